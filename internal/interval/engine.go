package interval

import (
	"fmt"
	"slices"
	"strings"
)

// Engine describes the engine of a load, as values: rules evaluate these, and only renderers turn them into text.
type Engine struct {
	Name     string   `json:"name"`              // of the generator: "native", "fio"
	Version  string   `json:"version,omitempty"` // of a separate program: "3.33"
	Loop     Loop     `json:"loop,omitempty"`
	Backends []string `json:"backends,omitempty"`
	// Fallback is set if the requested back end could not be used.
	Fallback *Fallback `json:"fallback,omitempty"`
	// Operations are the kinds of operations that the load counts, by their number in Interval.Directions, and Gauges its other
	// measurements, by their number in Interval.Gauges. Both apply to the whole workload, including its prefill. No operations
	// means those of I/O: read, write and trim.
	Operations []string `json:"operations,omitempty"`
	Gauges     []Gauge  `json:"gauges,omitempty"`
	// Stages are what the load goes through by itself, such as the rates of a curve. GaugeStage says which one is active.
	Stages []Stage `json:"stages,omitempty"`
	// CheckpointNanos is after how long the server of a database starts a checkpoint at the latest; 0 if it is unknown, or if there is none.
	CheckpointNanos int64 `json:"checkpoint_ns,omitempty"`
	// Notes are doubts about numbers, found on the machine that runs the load.
	Notes []EngineNote `json:"notes,omitempty"`
}

// Loop is the rule by which a load issues operations, which determines what its latency counts. Generators declare it; it is
// never inferred from the record.
type Loop string

const (
	// LoopClosed issues an operation when an earlier one has completed. Response time equals service time.
	LoopClosed Loop = "closed"
	// LoopOpen issues operations by a schedule, independent of completions. Response time counts from the intended start and is
	// recorded.
	LoopOpen Loop = "open"
	// LoopPaced limits operations to a rate and records only service time. A stall delays later operations, and no latency
	// includes that delay: response time is unknown, but at least the service time.
	LoopPaced Loop = "paced"
)

// Known reports whether l is one of the above.
func (l Loop) Known() bool { return l == LoopClosed || l == LoopOpen || l == LoopPaced }

// Gauge names a value that may rise and fall, such as a share of cache hits.
type Gauge struct {
	Name string `json:"name"`
	Unit string `json:"unit,omitempty"`
	// SoFar: the value describes the load up to then, such as a count or a mean since its start. The last one describes the load.
	SoFar bool `json:"so_far,omitempty"`
	// Meaning is set if rules evaluate the gauge. They never read its name.
	Meaning GaugeMeaning `json:"meaning,omitempty"`
}

// GaugeMeaning says what a Gauge is to rules.
type GaugeMeaning string

const (
	GaugeStage            GaugeMeaning = "stage"                      // number of the active one of Engine.Stages, from 1; a gap between two of them
	GaugeCheckpoints      GaugeMeaning = "database-checkpoints"       // checkpoints that the server of a database began since the load started
	GaugeCheckpointWrites GaugeMeaning = "database-checkpoint-writes" // what its checkpoints write, more than 0 while one writes
	// New orders in all transactions of a result of TPROC-C, from 0 to 1, known at the end only. Oracle counts transactions in another way.
	GaugeNewOrderShare       GaugeMeaning = "new-order-share"
	GaugeNewOrderShareOracle GaugeMeaning = "new-order-share-oracle"
)

// Stage is a part of a load in which it does one thing.
type Stage struct {
	Name string `json:"name"`
	// Curve is the number of the curve that it is a point of, from 1: its stages differ in their rates only. 0: of none.
	Curve int `json:"curve,omitempty"`
	// Rate orders the stages of a curve: operations per second, or percent of the maximum. Those of 0 find the maximum.
	Rate float64 `json:"rate,omitempty"`
	// SkipNanos is its beginning, which is not in its statistics.
	SkipNanos int64 `json:"skip_ns,omitempty"`
}

// GaugeMeant returns the number of the gauge with a meaning, -1 without one.
func (e Engine) GaugeMeant(meaning GaugeMeaning) int {
	return slices.IndexFunc(e.Gauges, func(g Gauge) bool { return g.Meaning == meaning })
}

// GaugeStreamSpread is the gauge of a load with parallel streams: the fastest minus the slowest one, in percent of their mean.
const GaugeStreamSpread = "spread of streams"

// DoesIO reports whether its operations are I/O operations.
func (e Engine) DoesIO() bool { return len(e.Operations) == 0 }

// RateUnit is the unit of its operations per second.
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

// NoteCode says what an EngineNote is about. A generator may have further codes, which are shown but not evaluated.
type NoteCode string

const (
	NoteBuffered  NoteCode = "buffered"  // direct I/O was requested, but the page cache is used
	NoteCached    NoteCode = "cached"    // the configuration requests that reads are served from memory
	NoteUnwritten NoteCode = "unwritten" // reads ranges of Device that were never written
	NoteMemory    NoteCode = "in-memory" // Device is in memory: Text is its file system or device

	NoteSmallData NoteCode = "small-data" // a data set below the rule of its benchmark, so that memory may serve reads

	NoteInCaches   NoteCode = "memory-in-caches"    // a benchmark of memory whose data may fit into caches
	NoteContended  NoteCode = "scale-below-clients" // clients of a database update fewer rows than they are
	NoteSmallPages NoteCode = "huge-pages-refused"  // a server asked for huge pages and did not get them

	NoteResolution NoteCode = "resolution" // the engine does not see single completions
)

// IsZero reports whether the engine is unknown.
func (e Engine) IsZero() bool { return e.Name == "" }

// Noted returns the notes of one code.
func (e Engine) Noted(code NoteCode) []EngineNote {
	return slices.DeleteFunc(slices.Clone(e.Notes), func(n EngineNote) bool { return n.Code != code })
}

// String is its display text: "native psync (io_uring refused: off); cached: …", "fio 3.33".
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

// enginesShownMax bounds how many engines one text names, because they may differ from VM to VM by the path of a disk.
const enginesShownMax = 3

// EngineText is the display text of the engines of one load, which may differ from VM to VM.
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
