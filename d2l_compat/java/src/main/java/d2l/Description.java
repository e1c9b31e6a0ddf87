package d2l;

import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The phrases of a figure's text alternative in one language. All languages have the same
 * placeholders in the same order.
 */
record Description(
        String title,
        String heatMap,
        String frames,
        String linePlot,
        String line,
        String noPoints,
        String extent,
        String noExtent,
        String unnamed,
        String values,
        String index,
        String curve,
        String separator) {

    private static final Pattern CHINESE_CHARACTERS =
            Pattern.compile("[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]");

    private static final Description ENGLISH =
            new Description(
                    "\"%s\": ",
                    "Heat map, %s rows (%s) by %s columns (%s), %s, %s of %s zero; "
                            + "colours %s from %s to %s.",
                    "%s cells framed; %s of %s rows have their largest value in one.",
                    "Line plot of %s against %s.",
                    "%s: %s points from (%s, %s) to (%s, %s), %s.",
                    "%s: no points.",
                    "values from %s to %s",
                    "values none",
                    "unnamed",
                    "values",
                    "index",
                    "Curve",
                    " ");

    private static final Description CHINESE =
            new Description(
                    "「%s」：",
                    "熱圖，縱軸 %s 格，是%s；橫軸 %s 格，是%s；%s，零有 %s 個（共 %s 個）；"
                            + "顏色 %s，從 %s 到 %s。",
                    "加框的有 %s 格；最大值在框內的有 %s 列（共 %s 列）。",
                    "折線圖，縱軸是%s，橫軸是%s。",
                    "%s：%s 個點，從 (%s, %s) 到 (%s, %s)，%s。",
                    "%s：沒有點。",
                    "數值從 %s 到 %s",
                    "沒有數值",
                    "未命名的軸",
                    "數值",
                    "編號",
                    "曲線",
                    "");

    /** Returns the phrases in the language of the labels. */
    static Description forLabels(Stream<String> labels) {
        return labels.anyMatch(Description::isChinese) ? CHINESE : ENGLISH;
    }

    static boolean isChinese(String text) {
        return CHINESE_CHARACTERS.matcher(text).find();
    }

    String extent(double[] values) {
        if (values.length == 0) {
            return noExtent;
        }
        double low = values[0];
        double high = values[0];
        for (double value : values) {
            low = Math.min(low, value);
            high = Math.max(high, value);
        }
        return extent.formatted(Numbers.formatFixed(low, 2), Numbers.formatFixed(high, 2));
    }
}
