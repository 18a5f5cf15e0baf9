package wire

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/stat"
)

// An exit code that a hostile agent claims cannot turn a failure into success.
func TestHostileExitCode(t *testing.T) {
	for _, exit := range []int{0, -1, 256, 1 << 20} {
		err := (&Error{Wire: diag.Wire{Message: "no", Exit: exit}}).Err()
		if diag.ExitCode(err) != diag.ExitInternal {
			t.Errorf("exit code %d became %d", exit, diag.ExitCode(err))
		}
	}
}

func TestHostileOutputs(t *testing.T) {
	for line, good := range map[string]bool{
		`{"end": {"next": 1, "outputs": [{"name": "a.txt", "text": "b"}]}}`:                                                  true,
		`{"end": {"next": 1, "outputs": [{"name": "../a", "text": "b"}]}}`:                                                   false,
		`{"end": {"next": 1, "outputs": [{"name": "a.txt", "text": "` + strings.Repeat("x", load.OutputBytesMax+1) + `"}]}}`: false,
		`{"end": {"next": 1, "outputs": [` + strings.Repeat(`{"name": "a"},`, load.OutputsMax) + `{"name": "a"}]}}`:          false,
	} {
		if _, err := Decode([]byte(line)); (err == nil) != good {
			t.Errorf("%.60s: %v", line, err)
		}
	}
}

// A line of an interval is the same text as that of encoding/json, and what it becomes does not change with the next one.
func TestIntervalLines(t *testing.T) {
	t.Parallel()
	line := func(sequence int64, latency uint64) []byte {
		h := &stat.Histogram{}
		h.Record(latency)
		iv := interval.Interval{
			Workload: "w \"<>", Group: "g", VM: "vm-1", Sequence: sequence, LengthNanos: 1e9, Gauges: interval.GaugeValues{1.5, math.NaN()},
			Devices: map[string]interval.DeviceTraffic{"/dev/sdb": {{Operations: latency}}},
		}
		iv.Directions[interval.Read].Operations, iv.Directions[interval.Read].Service = 1, h
		text := AppendInterval(nil, &iv)
		if want, err := json.Marshal(Record{Interval: &iv}); err != nil || string(text) != string(want) {
			t.Errorf("%s, %v, want %s", text, err, want)
		}
		return text
	}
	first, second := line(1, 1000), line(2, 5000)
	kept, err := Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 { // from any of the decoders
		if _, err := Decode(second); err != nil {
			t.Fatal(err)
		}
	}
	if again := AppendInterval(nil, kept.Interval); string(again) != string(first) {
		t.Errorf("the first became %s, want %s", again, first)
	}
	var general Record
	if err := json.Unmarshal(first, &general); err != nil {
		t.Fatal(err)
	}
	if text := AppendInterval(nil, general.Interval); string(text) != string(first) {
		t.Errorf("encoding/json reads %s", text)
	}
}

// Two members, trailing text and other layouts are as they would be to encoding/json.
func TestOtherLayouts(t *testing.T) {
	t.Parallel()
	iv := interval.Interval{Workload: "w", Group: "g", VM: "v", LengthNanos: 1e9}
	line := string(AppendInterval(nil, &iv))
	for text, ok := range map[string]bool{
		line: true, " " + line: true, strings.Replace(line, `{"interval":`, `{ "interval" : `, 1): true, line[:len(line)-1]: false, line + "}": false, line + line: false,
		line[:len(line)-1] + `,"lost":{"from":1,"through":2}}`: false, line[:len(line)-1] + `,"other":{}}`: true, strings.Replace(line, `"seq":0`, `"seq":-1`, 1): false,
	} {
		if _, err := Decode([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	iv := interval.Interval{Workload: "w", Group: "g", VM: "vm-00001", LengthNanos: 1e9}
	for d := range 2 {
		h := &stat.Histogram{}
		for i := range uint64(500) {
			h.Record(100_000 + i*i*300)
		}
		iv.Directions[d].Operations, iv.Directions[d].Service, iv.Directions[d].Response = 500, h, h
	}
	line := AppendInterval(nil, &iv)
	for name, text := range map[string][]byte{"own": line, "general": append([]byte(" "), line...)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
