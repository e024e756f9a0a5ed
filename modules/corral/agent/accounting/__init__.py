"""Job records: MariaDB and slurmdbd on the head, and their backup and the cluster's history in the bucket."""
