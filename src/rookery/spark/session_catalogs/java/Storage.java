import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableUtil;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.StorageCredential;
import org.apache.iceberg.io.SupportsStorageCredentials;

/** With which settings the files of a table are opened. */
class Storage {
  /** The properties of its FileIO, and the credentials that a REST server has sent for its metadata's folder. */
  static Map settings(Table table) {
    FileIO io = table.io();
    Map settings = new HashMap(io.properties());
    if (!(io instanceof SupportsStorageCredentials)) {
      return settings;
    }
    String location = TableUtil.metadataFileLocation(table);
    List credentials = ((SupportsStorageCredentials) io).credentials();
    StorageCredential closest = null;
    for (int i = 0; i < credentials.size(); i++) {
      StorageCredential each = (StorageCredential) credentials.get(i);
      boolean isCloser = closest == null || each.prefix().length() > closest.prefix().length();
      if (location.startsWith(each.prefix()) && isCloser) {
        closest = each;
      }
    }
    if (closest != null) {
      settings.putAll(closest.config());
    }
    return settings;
  }
}
