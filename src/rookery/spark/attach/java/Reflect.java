import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.*;
import java.util.concurrent.*;

/** Proxies, and calls of methods that are not public. */
class Reflect {
  static Object proxied(Object target, InvocationHandler handler) {
    Set interfaces = new LinkedHashSet();
    for (Class each = target.getClass(); each != null; each = each.getSuperclass()) {
      Class[] declared = each.getInterfaces();
      for (int i = 0; i < declared.length; i++) {
        if (Modifier.isPublic(declared[i].getModifiers())) {
          interfaces.add(declared[i]);
        }
      }
    }
    Class[] all = (Class[]) interfaces.toArray(new Class[interfaces.size()]);
    return Proxy.newProxyInstance(Reflect.class.getClassLoader(), all, handler);
  }

  static Object handlerOf(Object proxy) {
    return proxy != null && Proxy.isProxyClass(proxy.getClass()) ? Proxy.getInvocationHandler(proxy) : null;
  }

  static final Map METHODS = new ConcurrentHashMap(); // by class and name: none of them is overloaded

  static Method method(Class type, String name, Class[] arguments) throws NoSuchMethodException {
    List key = Arrays.asList(new Object[] {type, name});
    Method known = (Method) METHODS.get(key);
    if (known == null) {
      known = declared(type, name, arguments);
      METHODS.put(key, known);
    }
    return known;
  }

  static Method declared(Class type, String name, Class[] arguments) throws NoSuchMethodException {
    for (Class each = type; each != null; each = each.getSuperclass()) {
      try {
        Method found = each.getDeclaredMethod(name, arguments);
        found.setAccessible(true);
        return found;
      } catch (NoSuchMethodException next) {
        continue;
      }
    }
    throw new NoSuchMethodException(type.getName() + "." + name);
  }

  static Object call(Object target, String name) throws Exception {
    try {
      return method(target.getClass(), name, new Class[0]).invoke(target, new Object[0]);
    } catch (InvocationTargetException error) {
      throw error.getCause() instanceof Exception ? (Exception) error.getCause() : error;
    }
  }
}

/** Calls the target; its errors are thrown as it throws them. */
abstract class Forwarding implements InvocationHandler {
  Object forward(Object target, Method called, Object[] arguments) throws Throwable {
    try {
      called.setAccessible(true);
      return called.invoke(target, arguments);
    } catch (InvocationTargetException error) {
      throw error.getCause();
    }
  }
}
