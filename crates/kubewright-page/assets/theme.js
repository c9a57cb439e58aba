// Runs before the first paint, so that the theme does not flash. "auto" follows the system.
"use strict";
try {
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage, use the system theme.
}
