package interval_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

func drawHistogram(t *rapid.T) *stat.Histogram {
	if !rapid.Bool().Draw(t, "has") {
		return nil
	}
	h := &stat.Histogram{}
	for range rapid.IntRange(0, 20).Draw(t, "values") {
		h.RecordN(rapid.Uint64().Draw(t, "v"), rapid.Uint64Range(0, 1000).Draw(t, "n"))
	}
	return h
}

func drawTraffic(t *rapid.T) interval.Traffic {
	return interval.Traffic{
		Operations: rapid.Uint64().Draw(t, "ops"), Bytes: rapid.Uint64().Draw(t, "bytes"),
		Errors:  rapid.MapOfN(rapid.String(), rapid.Uint64(), 0, 3).Draw(t, "errors"),
		Service: drawHistogram(t), Response: drawHistogram(t), Failed: drawHistogram(t),
	}
}

func drawInterval(t *rapid.T) interval.Interval {
	iv := interval.Interval{
		Workload: rapid.String().Draw(t, "workload"), Group: rapid.SampledFrom([]string{"g", "", "<g>&"}).Draw(t, "group"),
		VM: "g-0001", Instance: rapid.IntRange(-1, 3).Draw(t, "instance"), Prefill: rapid.Bool().Draw(t, "prefill"),
		Sequence: rapid.Int64().Draw(t, "seq"), StartNanos: rapid.Int64().Draw(t, "start"),
		LengthNanos: rapid.Int64().Draw(t, "length"), Final: rapid.Bool().Draw(t, "final"),
		Due: rapid.Uint64().Draw(t, "due"), NotIssued: rapid.Uint64Range(0, 1).Draw(t, "not issued"),
		Backlog: rapid.Uint64().Draw(t, "backlog"), InFlight: rapid.Uint64().Draw(t, "in flight"),
		StalledNanos: rapid.Int64().Draw(t, "stalled"), CPUNanos: rapid.Int64().Draw(t, "cpu"),
		Effort: interval.Effort{
			BusiestNanos: rapid.Int64().Draw(t, "busiest"), WaitedNanos: rapid.Int64().Draw(t, "waited"),
			StolenNanos: rapid.Int64().Draw(t, "stolen"), ThrottledNanos: rapid.Int64().Draw(t, "throttled"),
		},
		Progress: interval.Progress{Gaps: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) interval.Gap {
			return interval.Gap{FromNanos: rapid.Int64().Draw(t, "from"), ToNanos: rapid.Int64().Draw(t, "to")}
		}), 0, 3).Draw(t, "gaps"), Waiting: drawHistogram(t),
			Early: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) interval.Early {
				e := interval.Early{FromNanos: rapid.Int64().Draw(t, "from"), ToNanos: rapid.Int64().Draw(t, "to")}
				e.Directions[rapid.IntRange(0, interval.OperationsMax-1).Draw(t, "direction")] = drawTraffic(t)
				return e
			}), 0, 2).Draw(t, "early")},
		Devices: rapid.MapOfN(rapid.String(), rapid.Custom(func(t *rapid.T) interval.DeviceTraffic {
			var d interval.DeviceTraffic
			for i := range d {
				d[i] = interval.DeviceCount{
					Operations:   rapid.Uint64().Draw(t, "ops"),
					Bytes:        rapid.Uint64Range(0, 1).Draw(t, "bytes"),
					ServiceNanos: rapid.Uint64().Draw(t, "service"),
				}
			}
			return d
		}), 0, 3).Draw(t, "devices"),
	}
	for d := range rapid.SampledFrom([]int{interval.DirectionCount, 2, 5, interval.OperationsMax}).Draw(t, "operations") {
		iv.Directions[d] = drawTraffic(t)
	}
	iv.Gauges = rapid.SliceOfN(rapid.Float64(), 0, 3).Draw(t, "gauges")
	return iv
}

func TestAppendJSONEqualsEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		iv := drawInterval(t)
		want, err := json.Marshal(iv)
		if err != nil {
			t.Fatal(err)
		}
		if got := interval.AppendJSON(nil, &iv); string(got) != string(want) {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestDecoderReadsEveryField fails when a field is added to Interval that encoder or decoder does not know.
func TestDecoderReadsEveryField(t *testing.T) {
	var d interval.Decoder // shared, so that data left over from the previous line would show
	rapid.Check(t, func(t *rapid.T) {
		iv := drawInterval(t)
		text, err := json.Marshal(iv)
		if err != nil {
			t.Fatal(err)
		}
		var want interval.Interval
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		got, err := d.Line(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(got)
		if err != nil || string(again) != string(text) {
			t.Fatalf("got\n%s\nwant\n%s", again, text)
		}
	})
}

// TestEveryFieldIsDrawn keeps the two tests above honest.
func TestEveryFieldIsDrawn(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		v := reflect.ValueOf(drawInterval(t))
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				seen[v.Type().Field(i).Name] = true
			}
		}
	})
	typ := reflect.TypeFor[interval.Interval]()
	for i := range typ.NumField() {
		if !seen[typ.Field(i).Name] {
			t.Errorf("field %s is never drawn", typ.Field(i).Name)
		}
	}
}

// Two operation counts that a reader must distinguish: the maximum, and one more.
func TestNumberOfOperations(t *testing.T) {
	for count, ok := range map[int]bool{interval.OperationsMax: true, interval.OperationsMax + 1: false} {
		line := `{"workload":"a","group":"b","vm":"c","instance":1,"seq":0,"start_ns":0,"length_ns":0,"dirs":[` +
			strings.Repeat(`{"ops":1},`, count-1) + `{"ops":2}]}`
		var d interval.Decoder
		iv, err := d.Line([]byte(line))
		if (err == nil) != ok || ok && iv.Directions[count-1].Operations != 2 {
			t.Errorf("%d operations: %v, %+v", count, err, iv.Directions)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	iv := interval.Interval{Workload: "w", Group: "g", VM: "v", LengthNanos: 1e9, Due: 3,
		Devices: map[string]interval.DeviceTraffic{"/dev/sdb": {{Operations: 1}}}}
	iv.Directions[0] = interval.Traffic{Operations: 1, Errors: map[string]uint64{"EIO": 2}, Service: &stat.Histogram{}}
	iv.Directions[0].Service.Record(12345)
	f.Add(interval.AppendJSON(nil, &iv))
	f.Add([]byte(`{"dirs":[{"service":{"n":1,"sum":1,"sq":1,"min":1,"max":1,"b":"b"}},{},{}]}`))
	f.Add([]byte(`{"workload":"a","group":"b","vm":"c","instance":1,"seq":0,"start_ns":0,"length_ns":0,"dirs":[{},{},{},{"ops":1}],"gauges":[1.5,-2e-7]}`))
	f.Add([]byte(`{"workload":"a","group":"b","vm":"c","instance":1,"seq":0,"start_ns":0,"length_ns":0,"dirs":[{},{},{}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var d interval.Decoder
		got, err := d.Line(line)
		var want interval.Interval
		wantErr := json.Unmarshal(line, &want)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("decoder says %v, encoding/json says %v", err, wantErr)
		}
		if err != nil {
			return
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			t.Fatalf("got\n%s\nwant\n%s", a, b)
		}
	})
}

func sample() interval.Interval {
	iv := interval.Interval{Workload: "OLTP", Group: "oltp", VM: "oltp-0042", Instance: 1, Sequence: 1234,
		StartNanos: 1234e9, LengthNanos: 1e9, Due: 500, CPUNanos: 12345678}
	for d := range 2 {
		t := &iv.Directions[d]
		t.Service, t.Response = &stat.Histogram{}, &stat.Histogram{}
		for i := range uint64(250) {
			t.Service.Record(80_000 + i*i*40)
			t.Response.Record(90_000 + i*i*41)
		}
		t.Operations, t.Bytes = 250, 250<<13
	}
	return iv
}

func BenchmarkAppendJSON(b *testing.B) {
	iv := sample()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = interval.AppendJSON(buf[:0], &iv)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecoder(b *testing.B) {
	iv := sample()
	line := interval.AppendJSON(nil, &iv)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	var d interval.Decoder
	for b.Loop() {
		if _, err := d.Line(line); err != nil {
			b.Fatal(err)
		}
	}
}
