"""Finding a Java and fetching jars, for the local broker and for Spark. Private."""
