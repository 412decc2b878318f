"""What people say for WHERE: SQL text and PyIceberg expressions, bound to columns as Spark means them."""
