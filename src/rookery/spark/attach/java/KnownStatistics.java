import java.math.BigDecimal;
import java.util.*;
import java.util.concurrent.*;
import org.apache.iceberg.Schema;
import org.apache.iceberg.types.Types;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.connector.read.colstats.Histogram;
import org.apache.spark.sql.connector.read.colstats.HistogramBin;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.FractionalType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;

/**
 * The statistics of the rows that match the conditions of a scan, if Spark plans by costs. Else it uses nothing but
 * the size, which is then that of the files: an estimate alone is no reason to broadcast a table.
 */
class KnownStatistics implements Statistics {
  final OptionalLong size;
  final OptionalLong rows;
  final Map columns = new HashMap();

  KnownStatistics(Statistics original, PlannedScan planned) throws Exception {
    Number counted = (Number) planned.answer.get(planned.query.byCosts ? "matching" : "rows");
    long before = original.numRows().orElse(counted == null ? 0L : counted.longValue());
    rows = counted == null ? original.numRows() : OptionalLong.of(Math.min(before, counted.longValue()));
    double longer = 0; // bytes by which a row is longer than Iceberg assumes, which gives each type one length
    Schema projection = (Schema) Reflect.call(planned.target, "projection");
    Map known = planned.query.byCosts ? (Map) planned.answer.get("columns") : Collections.EMPTY_MAP;
    StructField[] fields = planned.target.readSchema().fields();
    for (int i = 0; i < fields.length; i++) {
      Types.NestedField field = projection.asStruct().field(fields[i].name());
      Map column = field == null ? null : (Map) known.get(String.valueOf(field.fieldId()));
      boolean mayBeNaN = fields[i].dataType() instanceof FractionalType && !(fields[i].dataType() instanceof DecimalType);
      if (column != null && !(mayBeNaN && planned.query.hasNaN)) {
        KnownColumn stated = new KnownColumn(column, fields[i].dataType(), rows.orElse(0L));
        columns.put(FieldReference.column(fields[i].name()), stated);
        longer += stated.longer(fields[i].dataType());
      }
    }
    size = before == 0 || counted == null
        ? original.sizeInBytes()
        : OptionalLong.of((long) Math.ceil(original.sizeInBytes().orElse(0L) * (double) rows.getAsLong() / before
            + rows.getAsLong() * longer));
  }

  public OptionalLong sizeInBytes() {
    return size;
  }

  public OptionalLong numRows() {
    return rows;
  }

  public Map columnStats() {
    return columns;
  }
}

class KnownColumn implements ColumnStatistics {
  final OptionalLong distinctCount;
  final OptionalLong nullCount;
  final OptionalLong averageLength;
  final OptionalLong greatestLength;
  final Optional min;
  final Optional max;
  final Optional histogram;

  KnownColumn(Map known, DataType type, long rows) {
    distinctCount = number(known.get("ndv"));
    nullCount = number(known.get("nulls"));
    averageLength = number(known.get("avg_len"));
    greatestLength = number(known.get("max_len"));
    min = value(known.get("min"), type.typeName());
    max = value(known.get("max"), type.typeName());
    Map bins = (Map) known.get("histogram");
    long values = rows - nullCount.orElse(0L);
    histogram = bins == null || values <= 0 ? Optional.empty() : Optional.of(new EqualBins(bins, values));
  }

  /** Spark adds a reference and a length to the bytes of a text. */
  double longer(DataType type) {
    int added = type instanceof StringType ? 12 : 0;
    return averageLength.isPresent() ? averageLength.getAsLong() + added - type.defaultSize() : 0;
  }

  static OptionalLong number(Object known) {
    return known == null ? OptionalLong.empty() : OptionalLong.of(((Number) known).longValue());
  }

  static Optional value(Object known, String type) {
    if (known == null) {
      return Optional.empty();
    }
    if (type.equals("integer") || type.equals("date")) {
      return Optional.of(Integer.valueOf(((Number) known).intValue()));
    }
    if (type.equals("long") || type.equals("timestamp")) {
      return Optional.of(Long.valueOf(((Number) known).longValue()));
    }
    if (type.equals("float")) {
      return Optional.of(Float.valueOf(((Number) known).floatValue()));
    }
    if (type.equals("double")) {
      return Optional.of(Double.valueOf(((Number) known).doubleValue()));
    }
    if (type.equals("boolean")) {
      return Optional.of((Boolean) known);
    }
    if (type.startsWith("decimal")) {
      return Optional.of(Decimal.apply(new BigDecimal((String) known)));
    }
    return Optional.empty();
  }

  public OptionalLong distinctCount() {
    return distinctCount;
  }

  public Optional min() {
    return min;
  }

  public Optional max() {
    return max;
  }

  public OptionalLong nullCount() {
    return nullCount;
  }

  public OptionalLong avgLen() {
    return averageLength;
  }

  public OptionalLong maxLen() {
    return greatestLength;
  }

  public Optional histogram() {
    return histogram;
  }
}

/** A histogram of bins that have the same number of rows. */
class EqualBins implements Histogram {
  final HistogramBin[] bins;
  final double height;

  EqualBins(Map known, long values) {
    List edges = (List) known.get("edges");
    List ndvs = (List) known.get("ndvs");
    bins = new HistogramBin[ndvs.size()];
    for (int i = 0; i < bins.length; i++) {
      bins[i] = new Bin(real(edges.get(i)), real(edges.get(i + 1)), ((Number) ndvs.get(i)).longValue());
    }
    height = (double) values / bins.length;
  }

  static double real(Object number) {
    return ((Number) number).doubleValue();
  }

  public double height() {
    return height;
  }

  public HistogramBin[] bins() {
    return bins;
  }
}

class Bin implements HistogramBin {
  final double lo;
  final double hi;
  final long ndv;

  Bin(double lo, double hi, long ndv) {
    this.lo = lo;
    this.hi = hi;
    this.ndv = ndv;
  }

  public double lo() {
    return lo;
  }

  public double hi() {
    return hi;
  }

  public long ndv() {
    return ndv;
  }
}
