package d2l;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.Locale;

/** Formats numbers as Python does: from the exact value, half to even, with a sign for -0.00. */
final class Numbers {

    private Numbers() {}

    /** Formats a number with this many decimals. */
    static String formatFixed(double value, int decimals) {
        if (!Double.isFinite(value)) {
            return nonFinite(value);
        }
        String digits = magnitude(value).setScale(decimals, RoundingMode.HALF_EVEN).toPlainString();
        return sign(value) + digits;
    }

    /** Formats a number with this many significant digits, without trailing zeros. */
    static String formatGeneral(double value, int digits) {
        if (!Double.isFinite(value)) {
            return nonFinite(value);
        }
        MathContext context = new MathContext(digits, RoundingMode.HALF_EVEN);
        BigDecimal rounded = magnitude(value).round(context);
        if (rounded.signum() == 0) {
            return sign(value) + "0";
        }
        int exponent = rounded.precision() - rounded.scale() - 1;
        if (-4 <= exponent && exponent < digits) {
            return sign(value) + rounded.stripTrailingZeros().toPlainString();
        }
        String mantissa = rounded.movePointLeft(exponent).stripTrailingZeros().toPlainString();
        return sign(value) + String.format(Locale.ROOT, "%se%+03d", mantissa, exponent);
    }

    private static BigDecimal magnitude(double value) {
        return new BigDecimal(Math.abs(value));
    }

    private static String sign(double value) {
        return Math.copySign(1, value) < 0 ? "-" : "";
    }

    private static String nonFinite(double value) {
        return Double.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
    }
}
