"""AWS services of the box, where moto does or refuses less than AWS. EC2 has its own packages."""
