import java.util.*;
import java.util.concurrent.*;
import org.apache.iceberg.Schema;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.GeneralScalarExpression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.AlwaysFalse;
import org.apache.spark.sql.connector.expressions.filter.AlwaysTrue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.types.UTF8String;

/** Conditions as JSON: columns by their ids, literals with their types. */
class Conditions {
  static final int MOST_KEYS = 100000; // of a join; beyond them only their range is used

  final Schema schema;

  Conditions(Schema schema) {
    this.schema = schema;
  }

  Object ofKeys(Predicate keys) {
    return keys.children().length > MOST_KEYS ? range(keys) : encode(keys);
  }

  List encoded(Predicate[] predicates) {
    List all = new ArrayList();
    for (int i = 0; i < predicates.length; i++) {
      all.add(encode(predicates[i]));
    }
    return all;
  }

  Object encode(Object expression) {
    Map node = new LinkedHashMap();
    if (expression instanceof AlwaysTrue || expression instanceof AlwaysFalse) {
      node.put("op", expression instanceof AlwaysTrue ? "ALWAYS_TRUE" : "ALWAYS_FALSE");
      return node;
    }
    if (expression instanceof NamedReference) {
      Integer id = fieldId(((NamedReference) expression).fieldNames());
      if (id != null) {
        node.put("column", id);
        return node;
      }
    } else if (expression instanceof Literal) {
      Literal literal = (Literal) expression;
      Object value = jsonValue(literal.value());
      if (value != null || literal.value() == null) {
        node.put("type", literal.dataType().catalogString());
        node.put("value", value);
        return node;
      }
    } else if (expression instanceof GeneralScalarExpression) {
      GeneralScalarExpression general = (GeneralScalarExpression) expression;
      List children = new ArrayList();
      Expression[] parts = general.children();
      boolean isIn = general.name().equals("IN");
      for (int i = 0; i < (isIn ? 1 : parts.length); i++) {
        children.add(encode(parts[i]));
      }
      node.put("op", general.name());
      node.put("of", children);
      if (!isIn || putValues(parts, node)) {
        return node;
      }
      node.clear();
      node.put("opaque", "IN");
      return node;
    }
    node.put("opaque", String.valueOf(expression));
    return node;
  }

  /** Adds the values of a list, which may be long; false if they are not literals of one type. */
  static boolean putValues(Expression[] parts, Map node) {
    if (parts.length > MOST_KEYS) {
      return false;
    }
    List values = new ArrayList(parts.length);
    DataType type = null;
    for (int i = 1; i < parts.length; i++) {
      if (!(parts[i] instanceof Literal)) {
        return false;
      }
      Literal literal = (Literal) parts[i];
      Object value = jsonValue(literal.value());
      if (value == null && literal.value() != null || type != null && !type.equals(literal.dataType())) {
        return false;
      }
      type = literal.dataType();
      values.add(value);
    }
    if (type == null) {
      return false;
    }
    node.put("type", type.catalogString());
    node.put("values", values);
    return true;
  }

  /** The range of too many keys, where their order is that of the values. */
  Object range(Predicate keys) {
    Expression[] parts = keys.children();
    Comparable least = null;
    Comparable greatest = null;
    DataType type = null;
    boolean isRanged = keys.name().equals("IN");
    for (int i = 1; i < parts.length && isRanged; i++) {
      Object value = parts[i] instanceof Literal ? ((Literal) parts[i]).value() : null;
      isRanged = value instanceof Integer || value instanceof Long || value instanceof UTF8String;
      if (isRanged) {
        type = ((Literal) parts[i]).dataType();
        least = least == null || least.compareTo(value) > 0 ? (Comparable) value : least;
        greatest = greatest == null || greatest.compareTo(value) < 0 ? (Comparable) value : greatest;
      }
    }
    Map node = new LinkedHashMap();
    if (!isRanged) {
      node.put("opaque", "IN");
      return node;
    }
    List both = new ArrayList();
    both.add(compared(">=", parts[0], type, least));
    both.add(compared("<=", parts[0], type, greatest));
    node.put("op", "AND");
    node.put("of", both);
    return node;
  }

  Map compared(String name, Object column, DataType type, Object value) {
    Map literal = new LinkedHashMap();
    literal.put("type", type.catalogString());
    literal.put("value", jsonValue(value));
    List sides = new ArrayList();
    sides.add(encode(column));
    sides.add(literal);
    Map node = new LinkedHashMap();
    node.put("op", name);
    node.put("of", sides);
    return node;
  }

  /** The value as JSON has it; null for what it has no exact form for. */
  static Object jsonValue(Object value) {
    if (value instanceof Boolean || value instanceof Integer || value instanceof Long
        || value instanceof Short || value instanceof Byte) {
      return value;
    }
    if (value instanceof Float) { // as a double, exactly
      return Double.toHexString(((Float) value).doubleValue());
    }
    if (value instanceof Double) {
      return Double.toHexString(((Double) value).doubleValue());
    }
    if (value instanceof Decimal) {
      return ((Decimal) value).toJavaBigDecimal().toPlainString();
    }
    if (value instanceof UTF8String) {
      return Base64.getEncoder().encodeToString(((UTF8String) value).getBytes());
    }
    if (value instanceof byte[]) {
      return Base64.getEncoder().encodeToString((byte[]) value);
    }
    return null;
  }

  Integer fieldId(String[] parts) {
    Types.StructType struct = schema.asStruct();
    for (int i = 0; i < parts.length; i++) {
      Types.NestedField field = struct.field(parts[i]);
      if (field == null) {
        return null;
      }
      if (i == parts.length - 1) {
        return Integer.valueOf(field.fieldId());
      }
      if (!field.type().isStructType()) {
        return null;
      }
      struct = field.type().asStructType();
    }
    return null;
  }
}
