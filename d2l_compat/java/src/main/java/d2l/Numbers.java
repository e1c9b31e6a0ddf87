package d2l;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.Locale;

/** Numbers as the Python editions write them: exact value, half to even, a sign for -0.00. */
final class Numbers {

    private Numbers() {}

    /** With so many decimals. */
    static String fixed(double value, int decimals) {
        if (!Double.isFinite(value)) {
            return named(value);
        }
        String digits = exactly(value).setScale(decimals, RoundingMode.HALF_EVEN).toPlainString();
        return sign(value) + digits;
    }

    /** With so many significant digits, and no zeros at the end. */
    static String general(double value, int digits) {
        if (!Double.isFinite(value)) {
            return named(value);
        }
        BigDecimal rounded = exactly(value).round(new MathContext(digits, RoundingMode.HALF_EVEN));
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

    private static BigDecimal exactly(double value) {
        return new BigDecimal(Math.abs(value));
    }

    private static String sign(double value) {
        return Math.copySign(1, value) < 0 ? "-" : "";
    }

    private static String named(double value) {
        return Double.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
    }
}
