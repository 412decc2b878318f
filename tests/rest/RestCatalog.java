import java.io.ByteArrayInputStream;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/** Iceberg's REST catalog fixture on the loopback interface; its own launcher binds to all interfaces. */
public class RestCatalog {
  public static void main(String[] arguments) throws Exception {
    Properties given = new Properties();
    given.load(new ByteArrayInputStream(arguments[0].getBytes("ISO-8859-1")));
    Map properties = new HashMap(given);
    Catalog catalog = CatalogUtil.buildIcebergCatalog("backend", properties, null);
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(context);
    server.start();
    System.out.println(((ServerConnector) server.getConnectors()[0]).getLocalPort());
    System.out.flush();
    while (System.in.read() >= 0) {} // ends when the process that started it closes the pipe
    System.exit(0);
  }
}
