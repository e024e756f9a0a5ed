"""The two Pulumi programs: config -> spec -> plan -> components -> exports. Nothing is decided here."""
