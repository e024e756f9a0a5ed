"""S3, EFS and FSx for Lustre."""
