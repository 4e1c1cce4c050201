"""Reports about plans: explanations, profiles, dry runs, rooflines and provenance."""
