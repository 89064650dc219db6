"""Views: the stage and its homes, and charts."""
