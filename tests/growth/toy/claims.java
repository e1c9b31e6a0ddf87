// What the lesson claims.

// %% sum
claim("the sum is six", isShown(shown, 1, 6)); // in whatever language

// %% curve
claim("the curve is the square", shown.contains("3 points from (0, 0.00) to (2, 4.00)"));
