package sysbench

import (
	"math"
	"regexp"
	"strconv"
)

// report is one line that sysbench prints every second. Rates are of the time since the line before.
type report struct {
	rate   float64   // operations per second
	failed float64   // per second
	bytes  float64   // per second
	gauges []float64 // as test.gauges names them
}

// number is what sysbench prints of a rate or a time. Longer ones are not of this world, and their sums would overflow.
const number = `(\d{1,9}\.\d{1,9})`

// reportPatterns are the lines of reports, by test.
var reportPatterns = map[string]*regexp.Regexp{
	"memory": regexp.MustCompile(`^\[ \d+s \] ` + number + ` MiB/sec$`),
	"fileio": regexp.MustCompile(`^\[ \d+s \] reads: ` + number + ` MiB/s writes: ` + number + ` MiB/s fsyncs: ` + number + `/s latency \(ms,\d+%\): ` + number + `$`),
	"oltp": regexp.MustCompile(`^\[ \d+s \] thds: \d+ tps: ` + number + ` qps: ` + number + ` \(r/w/o: ` + number + `/` + number + `/` + number +
		`\) lat \(ms,\d+%\): ` + number + ` err/s:? ` + number + ` reconn/s: ` + number + `$`),
	"": regexp.MustCompile(`^\[ \d+s \] thds: \d+ eps: ` + number + ` lat \(ms,\d+%\): ` + number + `$`),
}

const mebibyte = 1 << 20

// parseReport reads one line. Other lines are none of reports.
func (c *config) parseReport(line string) (r report, is bool) {
	kind := c.test.name
	if c.database != nil {
		kind = "oltp"
	}
	pattern, known := reportPatterns[kind]
	if !known {
		pattern = reportPatterns[""]
	}
	m := pattern.FindStringSubmatch(line)
	if m == nil {
		return r, false
	}
	values := make([]float64, len(m)-1)
	for i, text := range m[1:] {
		values[i], _ = strconv.ParseFloat(text, 64) // the pattern is that of a number
	}
	switch kind {
	case "oltp":
		r.rate, r.failed = values[0], values[6]
		r.gauges = append([]float64{ofSome(values[5], r.rate)}, append(values[2:5:5], values[6:]...)...)
	case "memory":
		r.rate = values[0] * mebibyte / float64(c.block)
		r.bytes = r.rate * float64(c.moved())
	case "fileio":
		r.bytes = (values[0] + values[1]) * mebibyte
		r.rate = r.bytes / float64(c.block)
		if c.files.flushes {
			r.rate += values[2]
		}
		r.gauges = []float64{ofSome(values[3], r.rate), values[0], values[1], values[2]}
	default:
		r.rate, r.gauges = values[0], values[1:]
		if len(r.gauges) > 0 {
			r.gauges[0] = ofSome(r.gauges[0], r.rate)
		}
	}
	return r, true
}

// ofSome is a percentile, unknown where no operation completed: sysbench prints 0.
func ofSome(percentile, rate float64) float64 {
	if rate == 0 {
		return math.NaN()
	}
	return percentile
}
