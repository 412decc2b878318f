"""The types of blobs in Puffin files: Rookery's with their properties, and HLL."""

HLL_V1 = "apache-datasketches-hll-v1"
INVERTED_THETA_V1 = "rookery-inverted-theta-v1"
TABLE_THETA_V1 = "rookery-theta-v1"
KLL_V1 = "rookery-kll-v1"
TOP_K_V1 = "rookery-top-k-v1"
BLOOM_MATRIX_V1 = "rookery-bloom-matrix-v1"
BITMAP_V1 = "rookery-bitmap-v1"

CHECKSUM = "checksum"  # of a blob that is read whole
HEAD_CHECKSUM = "head-checksum"  # of the head of one that is read by ranges
HEAD_SIZE = "head-size"
