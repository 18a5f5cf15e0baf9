package page

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/braggdev/bragg/internal/result"
)

const (
	// joinedPointsMax bounds the points of one time axis when series with different times are drawn together.
	joinedPointsMax = 20_000
	// chartPointsMax bounds the points of one chart; beyond it, all series are thinned out to one common grid of times.
	chartPointsMax = 120_000
	// gridStretchesMin is the coarsest grid: about one stretch for two pixels.
	gridStretchesMin = 400
)

// Chart is one chart as the page's script reads it. Short keys keep the page small.
type Chart struct {
	ID       string      `json:"id"`
	Title    string      `json:"title"`
	Unit     string      `json:"unit"`
	From     float64     `json:"from"`
	To       float64     `json:"to"`
	Expected *float64    `json:"expected,omitempty"`
	Bands    []chartBand `json:"bands,omitempty"`
	Full     float64     `json:"full,omitempty"`    // the value of 100 %, in the unit; 0 if unknown
	Spread   bool        `json:"spread,omitempty"`  // the lines are many VMs: lowest, median and highest are drawn first
	Log      bool        `json:"log,omitempty"`     // a logarithmic axis at first
	Against  string      `json:"against,omitempty"` // the axis is a number of these, and not time
	Names    []string    `json:"names,omitempty"`   // of the numbers from 1 on that axis
	Near     bool        `json:"near,omitempty"`    // the vertical axis begins near the values, and not at zero
	Lanes    bool        `json:"lanes,omitempty"`   // each line is one VM that completes I/O (1) or none (0)
	Tables   []chartAxis `json:"tables"`
}

type chartBand struct {
	Name  string        `json:"name"`
	Lower result.Number `json:"lower"`
	Upper result.Number `json:"upper"`
}

// chartAxis is a set of lines that have their points at the same times.
type chartAxis struct {
	X     timesJSON   `json:"x"`
	Lines []ChartLine `json:"lines"`
}

type ChartLine struct {
	Name      string       `json:"name"`
	Color     int          `json:"color"`
	Dash      int          `json:"dash,omitempty"` // 0 solid, 1 dashed, 2 dotted, 3 dashed and dotted
	Kind      string       `json:"kind,omitempty"` // "service", "response"
	Order     int          `json:"order"`          // in the legend
	Statistic string       `json:"statistic,omitempty"`
	Band      string       `json:"band,omitempty"`   // "min", "median", "max" of an interval, in this order
	Dots      bool         `json:"dots,omitempty"`   // points without a line
	Pieces    [][2]float64 `json:"pieces,omitempty"` // stretches of one value each, from and to
	Y         numbersJSON  `json:"y"`
}

// numbersJSON are numbers written short: five significant digits, null for NaN.
type numbersJSON []float64

// timesJSON are seconds, written to the millisecond.
type timesJSON []float64

// MarshalJSON writes no more decimals than there are.
func (n timesJSON) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+7*len(n))
	out = append(out, '[')
	for i, v := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendFloat(out, math.Round(v*1000)/1000, 'f', -1, 64)
	}
	return append(out, ']'), nil
}

// MarshalJSON writes each number in the shorter of plain and exponent form.
func (n numbersJSON) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 2+6*len(n))
	out = append(out, '[')
	for i, v := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendShort(out, v)
	}
	return append(out, ']'), nil
}

func appendShort(out []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(out, "null"...)
	}
	const digits = 5
	start := len(out)
	out = strconv.AppendFloat(out, v, 'e', digits-1, 64)
	text := out[start:] // "-1.2340e+06"
	mantissa, exponent, _ := cutByte(text, 'e')
	power, err := strconv.Atoi(string(exponent))
	if err != nil {
		return append(out[:start], '0')
	}
	whole := make([]byte, 0, digits+1)
	for _, c := range mantissa {
		if c != '.' {
			whole = append(whole, c)
		}
	}
	power -= digits - 1
	for len(whole) > 1 && whole[len(whole)-1] == '0' && whole[len(whole)-2] != '-' {
		whole = whole[:len(whole)-1]
		power++
	}
	var rounded [32]byte
	number, err := strconv.ParseFloat(string(text), 64)
	if err != nil { // rounded up beyond the largest number
		return strconv.AppendFloat(out[:start], v, 'g', -1, 64)
	}
	plain := strconv.AppendFloat(rounded[:0], number, 'f', -1, 64)
	short := append(append(whole, 'e'), strconv.Itoa(power)...)
	if len(plain) <= len(short) {
		return append(out[:start], plain...)
	}
	return append(out[:start], short...)
}

func cutByte(text []byte, sep byte) (before, after []byte, found bool) {
	for i, c := range text {
		if c == sep {
			return text[:i], text[i+1:], true
		}
	}
	return text, nil, false
}

// Plotted is a line before its points are brought onto common axes.
type Plotted struct {
	ChartLine
	Points result.Points
}

// Tables groups lines by their times. If the lines have too many different times or too many points, all are put on one grid
// between from and to, and reduced is true.
func Tables(lines []Plotted, from, to float64) (list []chartAxis, reduced bool) {
	list = groupByTimes(lines)
	times, points := 0, 0
	for _, t := range list {
		times += len(t.X)
		points += len(t.X) * len(t.Lines)
	}
	if (len(list) == 1 || times <= joinedPointsMax && times*len(lines) <= 4*chartPointsMax) && points <= chartPointsMax {
		return list, false
	}
	stretches := max(gridStretchesMin, min(2*gridStretchesMin, chartPointsMax/(2*max(1, len(lines)))))
	return []chartAxis{grid(lines, from, to, stretches)}, true
}

func groupByTimes(lines []Plotted) []chartAxis {
	var list []chartAxis
	for _, l := range lines {
		l.Y = make(numbersJSON, len(l.Points))
		for i, p := range l.Points {
			l.Y[i] = p.Value
		}
		at := -1
		for i := range list {
			if sameTimes(list[i].X, l.Points) {
				at = i
				break
			}
		}
		if at < 0 {
			x := make(timesJSON, len(l.Points))
			for i, p := range l.Points {
				x[i] = p.Seconds
			}
			at = len(list)
			list = append(list, chartAxis{X: x})
		}
		list[at].Lines = append(list[at].Lines, l.ChartLine)
	}
	return list
}

func sameTimes(x []float64, points result.Points) bool {
	if len(x) != len(points) {
		return false
	}
	for i, p := range points {
		if x[i] != p.Seconds {
			return false
		}
	}
	return true
}

// grid puts every line on the same times: two points per stretch, its smallest and its largest value in order of time. No peak is
// lost.
func grid(lines []Plotted, from, to float64, stretches int) chartAxis {
	width := (to - from) / float64(stretches)
	out := chartAxis{X: make(timesJSON, 2*stretches)}
	for i := range stretches {
		out.X[2*i] = from + (float64(i)+0.25)*width
		out.X[2*i+1] = from + (float64(i)+0.75)*width
	}
	for _, l := range lines {
		l.Y = onGrid(l.Points, from, width, stretches)
		out.Lines = append(out.Lines, l.ChartLine)
	}
	return out
}

// stretch is what one line has in one stretch of a grid.
type stretch struct {
	low, high, lowAt, highAt float64
	any                      bool
	endsInGap                bool
}

func onGrid(points result.Points, from, width float64, stretches int) numbersJSON {
	cells := make([]stretch, stretches)
	end := 0 // after the last stretch with a value
	for _, p := range points {
		i := int((p.Seconds - from) / width)
		if i < 0 || i > stretches {
			continue
		}
		i = min(i, stretches-1)
		cells[i].add(p)
		if cells[i].any {
			end = i + 1
		}
	}
	y := make(numbersJSON, 2*stretches)
	last, inGap := math.NaN(), true
	for i, c := range cells {
		first, second := last, last // the points of this line may be further apart than the grid
		switch {
		case c.any && c.lowAt <= c.highAt:
			first, second = c.low, c.high
		case c.any:
			first, second = c.high, c.low
		case inGap || c.endsInGap || i >= end:
			first, second = math.NaN(), math.NaN()
		}
		y[2*i], y[2*i+1] = first, second
		if c.any {
			last = second
		}
		inGap = c.endsInGap || inGap && !c.any
	}
	return y
}

func (c *stretch) add(p result.Point) {
	c.endsInGap = math.IsNaN(p.Value)
	if c.endsInGap {
		return
	}
	if !c.any || p.Value < c.low {
		c.low, c.lowAt = p.Value, p.Seconds
	}
	if !c.any || p.Value > c.high {
		c.high, c.highAt = p.Value, p.Seconds
	}
	c.any = true
}

// scriptJSON marshals v for a script element: the encoder escapes <, >, & and the line separators, so that a name cannot end the
// element.
func scriptJSON(v any) (string, error) {
	text, err := json.Marshal(v)
	return string(text), err
}
