import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.catalog.ViewCatalog;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.source.HasIcebergCatalog;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog;
import scala.Option;
import scala.Tuple2;
import scala.collection.Iterator;

/** The catalogs of a session: each answer is JSON. */
public class RookeryCatalogs {
  static final ObjectMapper JSON = new ObjectMapper();

  static CatalogManager manager(SparkSession spark) {
    return spark.sessionState().catalogManager();
  }

  /** Answer a question; Spark loads a catalog by the settings of the thread's active session. */
  public static Object ask(Object session, String question, String catalog, List parts) throws Exception {
    SparkSession spark = (SparkSession) session;
    Option before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(spark);
    try {
      return JSON.writeValueAsString(answer(spark, question, catalog, parts));
    } finally {
      if (before.isDefined()) {
        SparkSession.setActiveSession((SparkSession) before.get());
      } else {
        SparkSession.clearActiveSession();
      }
    }
  }

  static Object answer(SparkSession spark, String question, String catalog, List parts) throws Exception {
    if (question.equals("current")) {
      return manager(spark).currentCatalog().name();
    }
    if (question.equals("settings")) {
      return settings(spark);
    }
    if (question.equals("resolve")) {
      return resolve(spark, parts, catalog);
    }
    CatalogPlugin plugin = manager(spark).catalog(catalog);
    if (question.equals("may have tables")) {
      return Boolean.valueOf(mayHaveTables(plugin));
    }
    if (question.equals("tables")) {
      return tables(plugin);
    }
    if (question.equals("namespaces")) {
      return Arrays.asList(((SupportsNamespaces) plugin).listNamespaces());
    }
    List full = new ArrayList(parts);
    full.add(0, catalog);
    return open((TableCatalog) plugin, Spark3Util.catalogAndIdentifier(spark, full).identifier());
  }

  /** The settings of all catalogs. */
  static Map settings(SparkSession spark) {
    Map found = new TreeMap();
    Iterator all = spark.conf().getAll().iterator();
    while (all.hasNext()) {
      Tuple2 setting = (Tuple2) all.next();
      if (((String) setting._1()).startsWith("spark.sql.catalog.")) {
        found.put(setting._1(), setting._2());
      }
    }
    return found;
  }

  static boolean mayHaveTables(CatalogPlugin plugin) {
    return plugin instanceof TableCatalog && !(plugin instanceof V2SessionCatalog);
  }

  /** Which catalog and name Spark means by the parts of a name; where none begins with a catalog, it is home. */
  static Map resolve(SparkSession spark, List parts, String home) {
    Spark3Util.CatalogAndIdentifier found =
        home == null
            ? Spark3Util.catalogAndIdentifier(spark, parts)
            : Spark3Util.catalogAndIdentifier(spark, parts, manager(spark).catalog(home));
    Map answer = new LinkedHashMap();
    answer.put("catalog", found.catalog().name());
    answer.put("may_have_tables", Boolean.valueOf(mayHaveTables(found.catalog())));
    answer.put("namespace", Arrays.asList(found.identifier().namespace()));
    answer.put("table", found.identifier().name());
    return answer;
  }

  /** A table as it is now, and not as the session has cached it: with new credentials too. */
  static Map open(TableCatalog tables, Identifier identifier) throws Exception {
    Map answer = new LinkedHashMap();
    Object loaded = null;
    try {
      tables.invalidateTable(identifier);
      loaded = tables.loadTable(identifier);
    } catch (Exception error) {
      if (!isMissing(error)) {
        throw error;
      }
      answer.put("kind", isView(tables, identifier) ? "view" : "missing");
      return answer;
    }
    if (!(loaded instanceof SparkTable)) {
      answer.put("kind", "other");
      return answer;
    }
    Table table = ((SparkTable) loaded).table();
    boolean isNamedSo = !(tables instanceof HasIcebergCatalog) || table.name().endsWith(identifier.name());
    if (table instanceof BaseMetadataTable || !isNamedSo) { // as db.t.branch_b is of db.t
      answer.put("kind", "part");
      return answer;
    }
    answer.put("kind", "table");
    answer.put("metadata", TableUtil.metadataFileLocation(table));
    answer.put("io", Storage.settings(table));
    return answer;
  }

  static boolean isMissing(Exception error) {
    return error.getClass().getSimpleName().startsWith("NoSuch");
  }

  static boolean isView(TableCatalog tables, Identifier identifier) {
    if (!(tables instanceof HasIcebergCatalog)) {
      return false;
    }
    Object iceberg = ((HasIcebergCatalog) tables).icebergCatalog();
    TableIdentifier name = TableIdentifier.of(Namespace.of(identifier.namespace()), identifier.name());
    return iceberg instanceof ViewCatalog && ((ViewCatalog) iceberg).viewExists(name);
  }

  /** The names of all tables, each as the list of its parts. */
  static List tables(CatalogPlugin plugin) throws Exception {
    List names = new ArrayList();
    String[][] top = ((SupportsNamespaces) plugin).listNamespaces();
    for (int i = 0; i < top.length; i++) {
      addTables(plugin, top[i], names);
    }
    return names;
  }

  static void addTables(CatalogPlugin plugin, String[] namespace, List names) throws Exception {
    try {
      addTablesIn(plugin, namespace, names);
      String[][] below = ((SupportsNamespaces) plugin).listNamespaces(namespace);
      for (int i = 0; i < below.length; i++) {
        addTables(plugin, below[i], names);
      }
    } catch (Exception error) {
      if (!isMissing(error)) { // dropped since it was listed, or of a catalog with one level
        throw error;
      }
    }
  }

  static void addTablesIn(CatalogPlugin plugin, String[] namespace, List names) throws Exception {
    if (plugin instanceof HasIcebergCatalog) { // which leaves out tables of other formats
      List found = ((HasIcebergCatalog) plugin).icebergCatalog().listTables(Namespace.of(namespace));
      for (int i = 0; i < found.size(); i++) {
        names.add(parts(namespace, ((TableIdentifier) found.get(i)).name()));
      }
      return;
    }
    Identifier[] found = ((TableCatalog) plugin).listTables(namespace);
    for (int i = 0; i < found.length; i++) {
      names.add(parts(namespace, found[i].name()));
    }
  }

  static List parts(String[] namespace, String name) {
    List parts = new ArrayList(Arrays.asList(namespace));
    parts.add(name);
    return parts;
  }
}
