"""Publishers and listeners under fire, and a checker that judges what came of it."""
