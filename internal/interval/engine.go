package interval

import (
	"fmt"
	"slices"
	"strings"
)

// Engine describes the engine of a load, as values: rules evaluate these, and only renderers turn them into text.
type Engine struct {
	Name     string   `json:"name"`              // of the generator: "native", "fio"
	Version  string   `json:"version,omitempty"` // of a program of its own: "3.33"
	Loop     Loop     `json:"loop,omitempty"`
	Backends []string `json:"backends,omitempty"`
	// Fallback is set if the requested back end could not be used.
	Fallback *Fallback `json:"fallback,omitempty"`
	// Operations are the kinds of operations that the load counts, by their number in Interval.Directions, and Gauges what it
	// measures besides, by their number in Interval.Gauges. Both hold for all of a workload, its prefill too. No operations:
	// those of I/O, which are read, write and trim.
	Operations []string `json:"operations,omitempty"`
	Gauges     []Gauge  `json:"gauges,omitempty"`
	// Notes are what casts doubt on numbers, found on the machine that runs the load.
	Notes []EngineNote `json:"notes,omitempty"`
}

// Loop says when operations of a load are issued, and so what its latency counts. Generators declare it; it is never inferred
// from what was recorded.
type Loop string

const (
	// LoopClosed issues an operation when an earlier one has completed. Response time equals service time.
	LoopClosed Loop = "closed"
	// LoopOpen issues operations by a schedule, whatever became of those before. Response time counts from the
	// intended start and is recorded.
	LoopOpen Loop = "open"
	// LoopPaced holds operations back to a rate and records only service time. A stall delays the operations behind it,
	// and their wait is in no latency: response time is at least the service time, and not known.
	LoopPaced Loop = "paced"
)

// Known reports whether it is one of the above.
func (l Loop) Known() bool { return l == LoopClosed || l == LoopOpen || l == LoopPaced }

// Gauge names a value that may rise and fall, such as a share of cache hits.
type Gauge struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
}

// DoesIO reports whether its operations are I/O operations.
func (e Engine) DoesIO() bool { return len(e.Operations) == 0 }

// RateUnit is that of its operations per second.
func (e Engine) RateUnit() string {
	if e.DoesIO() {
		return "IOPS"
	}
	return "operations/s"
}

// Operation is the name of the operation with that number: "read", "new-order".
func (e Engine) Operation(number int) string {
	switch {
	case number < len(e.Operations):
		return e.Operations[number]
	case e.DoesIO() && number < DirectionCount:
		return Direction(number).String()
	}
	return fmt.Sprintf("operation %d", number)
}

// Fallback has the back end that was refused, and the reason.
type Fallback struct {
	From string `json:"from"`
	Why  string `json:"why"`
}

// EngineNote is one caveat. Text is for readers only; code evaluates Code instead.
type EngineNote struct {
	Code   NoteCode `json:"code"`
	Device string   `json:"device,omitempty"` // as the configuration names it
	Text   string   `json:"text"`
}

// NoteCode says what an EngineNote is about. A generator may have codes of its own, which are shown and not judged.
type NoteCode string

const (
	NoteBuffered  NoteCode = "buffered"  // direct I/O was requested, but the page cache is used
	NoteCached    NoteCode = "cached"    // the configuration wants reads to be served from memory
	NoteUnwritten NoteCode = "unwritten" // reads ranges of Device that nothing ever wrote
)

// IsZero reports whether the engine is unknown.
func (e Engine) IsZero() bool { return e.Name == "" }

// Noted returns the notes of one code.
func (e Engine) Noted(code NoteCode) []EngineNote {
	return slices.DeleteFunc(slices.Clone(e.Notes), func(n EngineNote) bool { return n.Code != code })
}

// String is how readers see it: "native psync (io_uring refused: off); cached: …", "fio 3.33".
func (e Engine) String() string {
	var b strings.Builder
	b.WriteString(e.Name)
	for _, more := range []string{e.Version, strings.Join(e.Backends, " and ")} {
		if more != "" {
			b.WriteString(" " + more)
		}
	}
	if e.Fallback != nil {
		fmt.Fprintf(&b, " (%s refused: %s)", e.Fallback.From, e.Fallback.Why)
	}
	for _, n := range e.Notes {
		fmt.Fprintf(&b, "; %s: %s", n.Code, n.Text)
	}
	return b.String()
}

// enginesShownMax bounds how many engines one text names: they may differ from VM to VM by the path of a disk.
const enginesShownMax = 3

// EngineText is how readers see the engines of one load, which may differ from VM to VM.
func EngineText(list []Engine) string {
	var texts []string
	for _, e := range list[:min(len(list), enginesShownMax)] {
		texts = append(texts, e.String())
	}
	if n := len(list) - enginesShownMax; n > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(texts, " | ")
}
