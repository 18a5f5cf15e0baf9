package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Samples are written as lines of two kinds. A series line defines numbers for series that appear for the first time:
//
//	{"series":[[7,"node_disk_reads_completed_total",{"vm":"a-0001"}]]}
//
// and a value line has the values of one time, as alternating numbers and values; a value that JSON cannot express is a string:
//
//	{"at_ns":5000000000,"v":[7,1234,8,"NaN"]}

// seriesMax bounds the number of different series in one bundle.
const seriesMax = 5_000_000

type seriesLine struct {
	Series []seriesDefinition `json:"series,omitempty"`
	At     int64              `json:"at_ns,omitempty"`
	Values []sampleNumber     `json:"v,omitempty"`
}

type seriesDefinition struct {
	Number int
	Name   string
	Labels map[string]string
}

func (d seriesDefinition) MarshalJSON() ([]byte, error) {
	labels := d.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return json.Marshal([]any{d.Number, d.Name, labels})
}

func (d *seriesDefinition) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) != 3 {
		return fmt.Errorf("series definition has %d parts, want 3", len(parts))
	}
	for i, into := range []any{&d.Number, &d.Name, &d.Labels} {
		if err := json.Unmarshal(parts[i], into); err != nil {
			return err
		}
	}
	return nil
}

// sampleNumber is a float64 whose JSON preserves NaN and infinities.
type sampleNumber float64

func (n *sampleNumber) UnmarshalJSON(data []byte) error {
	if len(data) > 1 && data[0] == '"' {
		data = data[1 : len(data)-1]
	}
	f, err := strconv.ParseFloat(string(data), 64)
	*n = sampleNumber(f)
	return err
}

// appendSamples appends the lines of samples; numbers holds the series defined so far.
func appendSamples(text []byte, samples []Sample, numbers map[string]int) []byte {
	for len(samples) > 0 {
		n := 1
		for n < len(samples) && samples[n].AtNanos == samples[0].AtNanos {
			n++
		}
		text = appendMoment(text, samples[:n], numbers)
		samples = samples[n:]
	}
	return text
}

func appendMoment(text []byte, samples []Sample, numbers map[string]int) []byte {
	var define []seriesDefinition
	values := strconv.AppendInt([]byte(`{"at_ns":`), samples[0].AtNanos, 10)
	values = append(values, `,"v":[`...)
	for i, s := range samples {
		key := seriesKey(s.Name, s.Labels)
		number, known := numbers[key]
		if !known {
			if len(numbers) >= seriesMax {
				continue
			}
			number = len(numbers)
			numbers[key] = number
			define = append(define, seriesDefinition{number, s.Name, s.Labels})
		}
		if i > 0 {
			values = append(values, ',')
		}
		values = strconv.AppendInt(values, int64(number), 10)
		values = append(values, ',')
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			values = strconv.AppendQuote(values, strconv.FormatFloat(s.Value, 'g', -1, 64))
		} else {
			values = strconv.AppendFloat(values, s.Value, 'g', -1, 64)
		}
	}
	if define != nil {
		// Strings and integers always marshal.
		line, _ := json.Marshal(seriesLine{Series: define})
		text = append(append(text, line...), '\n')
	}
	return append(append(text, values...), ']', '}', '\n')
}

// seriesKey is a text that is the same for equal series only.
func seriesKey(name string, labels map[string]string) string {
	key := strconv.AppendQuote(nil, name)
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		key = strconv.AppendQuote(key, label)
		key = strconv.AppendQuote(key, labels[label])
	}
	return string(key)
}

// sampleReader turns lines back into samples.
type sampleReader struct {
	series map[int]seriesDefinition
}

// line calls yield for every sample of one line and returns false when yield did.
func (r *sampleReader) line(text []byte, yield func(Sample, error) bool) (bool, error) {
	var l seriesLine
	if err := json.Unmarshal(text, &l); err != nil {
		return true, err
	}
	for _, d := range l.Series {
		if len(r.series) >= seriesMax {
			return true, fmt.Errorf("more than %d series", seriesMax)
		}
		r.series[d.Number] = d
	}
	if len(l.Values)%2 != 0 {
		return true, fmt.Errorf("%d numbers do not make pairs of series and value", len(l.Values))
	}
	for i := 0; i < len(l.Values); i += 2 {
		d, ok := r.series[int(l.Values[i])]
		if !ok {
			return true, fmt.Errorf("series %v was not defined", l.Values[i])
		}
		s := Sample{AtNanos: l.At, Name: d.Name, Labels: d.Labels, Value: float64(l.Values[i+1])}
		if !yield(s, nil) {
			return false, nil
		}
	}
	return true, nil
}
