"""Do not collect the toy's files, which are templates."""

collect_ignore = ["toy"]
