package d2l;

/** Cynthia Brewer's colour scales for heat maps, from low values to high ones. */
public enum ColorMap {
    /** White to dark blue. */
    BLUES(
            "Blues", 0xF7FBFF, 0xDEEBF7, 0xC6DBEF, 0x9ECAE1, 0x6BAED6, 0x4292C6, 0x2171B5, 0x08519C,
            0x08306B),
    /** White to dark red. */
    REDS(
            "Reds", 0xFFF5F0, 0xFEE0D2, 0xFCBBA1, 0xFC9272, 0xFB6A4A, 0xEF3B2C, 0xCB181D, 0xA50F15,
            0x67000D),
    /** Blue for negative numbers, white for zero, red for positive ones. */
    BLUE_TO_RED(
            "RdBu_r", 0x053061, 0x2166AC, 0x4393C3, 0x92C5DE, 0xD1E5F0, 0xF7F7F7, 0xFDDBC7,
            0xF4A582, 0xD6604D, 0xB2182B, 0x67001F);

    private static final int LEVELS = 256;

    private final String name;
    private final int[] anchors;

    ColorMap(String name, int... anchors) {
        this.name = name;
        this.anchors = anchors;
    }

    /** Returns matplotlib's name. */
    @Override
    public String toString() {
        return name;
    }

    /** Returns the colour of a value from 0 to 1, as 0xRRGGBB. */
    int color(double value) {
        int level = (int) Math.max(0, Math.min(LEVELS - 1, value * LEVELS));
        double position = (double) level / (LEVELS - 1) * (anchors.length - 1);
        int lower = (int) Math.min(position, anchors.length - 2);
        int color = 0;
        for (int shift = 16; shift >= 0; shift -= 8) {
            int from = anchors[lower] >> shift & 0xFF;
            int to = anchors[lower + 1] >> shift & 0xFF;
            color |= (int) Math.round(from + (to - from) * (position - lower)) << shift;
        }
        return color;
    }
}
