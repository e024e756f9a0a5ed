"""The two Pulumi programs: config -> spec -> plan -> components -> exports. `plan` makes the decisions."""
