// Package wire is what controllers and agents say to each other: the operations, their bodies, and the bounds that both ends keep.
//
//	controller ── commands: JSON ──▶ agent
//	controller ◀── stream: one Record per line ── agent
//
// The package has no connections and no state. Package agent implements the agent's side, package client the
// controller's.
package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// Version is raised when a peer of the former version could misread a message. Both ends must agree.
//
//	GET    /v1/hello                            → Hello
//	GET    /v1/health                           → Health
//	GET    /v1/log                              the tail of the agent's log, as text
//	PUT    /v1/workloads/{id}[?hold=1&zero_uptime_ns=Z]
//	                                            load.Workload → 201 once prepared and, without hold, started; again: the same answer
//	POST   /v1/workloads/{id}/start?at_uptime_ns=T   a held workload starts then; again: nothing changes
//	POST   /v1/workloads/{id}/split?at_uptime_ns=T   its interval ends then; the generator may be unable to
//	GET    /v1/workloads/{id}/intervals?from=N  → Record per line, until the end record
//	POST   /v1/workloads/{id}/acknowledge?through=N   intervals up to N may be forgotten
//	POST   /v1/workloads/{id}/stop              the last intervals and the end record follow on the stream
//	DELETE /v1/workloads/{id}                   stop and forget
//
// A request that changes state carries a fence (header Bragg-Fence). An agent remembers the highest and rejects lower
// ones, so that a controller that lost its lease cannot disturb its successor. The first request with a higher fence
// stops workloads of lower ones.
//
// Times are given in the agent's uptime (nanoseconds on its monotonic clock since its start), so that a step of its
// wall clock has no effect. Z is the uptime at the zero of the run's axis; it may be negative.
const Version = 2

// UptimeMax limits times and durations so that their sums do not overflow: about sixty years.
const UptimeMax = int64(1) << 61

// Limits of both ends.
const (
	HeaderBytesMax  = 64 << 10
	ReplyBytesMax   = 1 << 20
	LineBytesMax    = 8 << 20 // an interval with every histogram bucket in use has about 1.5 MiB
	DevicesMax      = 256
	ErrorClassesMax = 64
	nameBytesMax    = 4096
	idBytes         = 16
)

// Names of the protocol.
const (
	FenceHeader = "Bragg-Fence"
	JSONType    = "application/json"
	LinesType   = "application/x-ndjson"
	TextType    = "text/plain; charset=utf-8"
	HoldKey     = "hold"
	ZeroKey     = "zero_uptime_ns"
	AtKey       = "at_uptime_ns"
	// CodeUnknownLoad is of errors about a workload that the agent does not know (any more).
	CodeUnknownLoad = "agent-unknown-workload"
)

// Hello is the identity of an agent.
type Hello struct {
	Protocol       int      `json:"protocol"`
	Version        string   `json:"version"`
	Boot           string   `json:"boot"` // differs after every start of the agent
	VM             string   `json:"vm"`
	PID            int      `json:"pid"`
	Generators     []string `json:"generators"`
	MetricsAddress string   `json:"metrics_address,omitempty"`
	UnixNanos      int64    `json:"unix_ns"` // the agent's clock when it answered
	UptimeNanos    int64    `json:"uptime_ns"`
	// MachineID and Addresses come from an agent with a machine of its own. Clones that kept what their template had share them.
	MachineID string   `json:"machine_id,omitempty"`
	Addresses []string `json:"addresses,omitempty"` // without prefix, in order
	// CPUs are those of an agent with a machine of its own, nil if its system does not describe them.
	CPUs *CPUs `json:"cpus,omitempty"`
}

// CPUs is how the CPUs of a machine are divided, as its system sees it.
type CPUs struct {
	Sockets int `json:"sockets"`
	Cores   int `json:"cores"`   // per socket
	Threads int `json:"threads"` // per core
}

// Health is the state of an agent.
type Health struct {
	Boot           string       `json:"boot"`
	UptimeNanos    int64        `json:"uptime_ns"`
	Workloads      []TaskHealth `json:"workloads"`
	BufferedBytes  int64        `json:"buffered_bytes"`
	LoadsRemaining int          `json:"loads_remaining"` // how many more may start before old ones are forgotten
}

// TaskHealth is one workload that an agent knows.
type TaskHealth struct {
	ID        string          `json:"id"`
	Workload  string          `json:"workload"`
	Engine    interval.Engine `json:"engine,omitzero"` // what drives the load, where the generator knows more than its plan did
	Ports     []int           `json:"ports,omitempty"` // of its servers, one for each peer, if it serves
	Prepared  bool            `json:"prepared"`        // devices are open, or that failed
	Running   bool            `json:"running"`
	Produced  int64           `json:"produced"` // intervals so far
	Buffered  int             `json:"buffered"`
	Discarded int64           `json:"discarded"` // intervals that no controller fetched in time
}

// Record is one line of a stream: exactly one field is set. A line without content is a heartbeat.
type Record struct {
	Interval *interval.Interval `json:"interval,omitempty"`
	Lost     *LostRange         `json:"lost,omitempty"`
	End      *End               `json:"end,omitempty"`
}

// LostRange reports that intervals From to Through were discarded because no controller fetched them in time.
type LostRange struct {
	From    int64 `json:"from"`
	Through int64 `json:"through"`
}

// End closes a stream. Next is the number of intervals that the workload made, Outputs is what its programs wrote.
type End struct {
	Next    int64         `json:"next"`
	Error   *Error        `json:"error,omitempty"`
	Outputs []load.Output `json:"outputs,omitempty"`
}

func (e *End) check() error {
	if e.Next < 0 {
		return errors.New("read record: negative number of intervals")
	}
	if len(e.Outputs) > load.OutputsMax {
		return fmt.Errorf("read record: %d outputs of programs, want at most %d", len(e.Outputs), load.OutputsMax)
	}
	for _, o := range e.Outputs {
		if !o.Valid() {
			return errors.New("read record: invalid output of a program")
		}
	}
	return nil
}

// Error is an error of the agent. Lost marks that load.ErrLost is in its chain.
type Error struct {
	diag.Wire
	Lost bool `json:"lost,omitempty"`
}

// ToError returns the form of err to send; nil for nil.
func ToError(err error) *Error {
	if err == nil {
		return nil
	}
	return &Error{Wire: diag.ToWire(err), Lost: errors.Is(err, load.ErrLost)}
}

// Err returns the error that was sent; nil for nil.
func (w *Error) Err() error {
	switch {
	case w == nil:
		return nil
	case w.Lost && !w.List.HasErrors():
		return fmt.Errorf("%w: %s", load.ErrLost, w.Message)
	}
	return w.Wire.Err()
}

// intervalBegin is what lines of intervals begin with.
const intervalBegin = `{"interval":`

// AppendInterval appends the line of an interval, without its end.
func AppendInterval(dst []byte, iv *interval.Interval) []byte {
	return append(interval.AppendJSON(append(dst, intervalBegin...), iv), '}')
}

// decoders are shared, because there are as many streams as agents and each rarely needs one.
var decoders = sync.Pool{New: func() any { return &interval.Decoder{} }}

// decode reads a line in any layout of JSON. Nearly all lines are those of AppendInterval, whose layout is known.
func decode(line []byte, r *Record) error {
	if text, ok := bytes.CutPrefix(line, []byte(intervalBegin)); ok && bytes.HasSuffix(text, []byte("}")) {
		d, _ := decoders.Get().(*interval.Decoder)
		iv, own := d.Keep(text[:len(text)-1])
		decoders.Put(d)
		if own {
			r.Interval = &iv
			return nil
		}
	}
	return json.Unmarshal(line, r)
}

// Decode parses and validates one line of a stream.
func Decode(line []byte) (Record, error) {
	var r Record
	if err := decode(line, &r); err != nil {
		return Record{}, fmt.Errorf("read record: %w", err)
	}
	set := 0
	if r.Interval != nil {
		set++
		if err := checkInterval(r.Interval); err != nil {
			return Record{}, fmt.Errorf("read interval %d: %w", r.Interval.Sequence, err)
		}
	}
	if r.Lost != nil {
		set++
		if r.Lost.From < 0 || r.Lost.Through < r.Lost.From || r.Lost.Through == math.MaxInt64 {
			return Record{}, errors.New("read record: lost range is empty or out of bounds")
		}
	}
	if r.End != nil {
		set++
		if err := r.End.check(); err != nil {
			return Record{}, err
		}
	}
	if set != 1 {
		return Record{}, errors.New("read record: not exactly one of interval, lost, end")
	}
	return r, nil
}

func checkInterval(iv *interval.Interval) error {
	if iv.Sequence < 0 || iv.Sequence == math.MaxInt64 {
		return errors.New("sequence out of bounds")
	}
	if iv.LengthNanos < 0 || iv.LengthNanos > UptimeMax || iv.StartNanos < -UptimeMax || iv.StartNanos > UptimeMax {
		return errors.New("time out of bounds")
	}
	if len(iv.Gauges) > interval.GaugesMax {
		return fmt.Errorf("%d gauges, want at most %d", len(iv.Gauges), interval.GaugesMax)
	}
	if len(iv.Devices) > DevicesMax {
		return fmt.Errorf("%d devices, want at most %d", len(iv.Devices), DevicesMax)
	}
	for name := range iv.Devices {
		if len(name) > nameBytesMax {
			return errors.New("device name too long")
		}
	}
	for d := range iv.Directions {
		errors := iv.Directions[d].Errors
		if len(errors) > ErrorClassesMax {
			return fmt.Errorf("%d classes of errors, want at most %d", len(errors), ErrorClassesMax)
		}
		for class := range errors {
			if len(class) > nameBytesMax {
				return fmt.Errorf("class of errors has %d bytes", len(class))
			}
		}
	}
	return nil
}

// NewID returns a random id, for a workload or for the run of an agent.
func NewID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails: it crashes the program instead
	return hex.EncodeToString(b[:])
}

// ValidID reports whether id has the form of NewID's.
func ValidID(id string) bool {
	if len(id) != 2*idBytes {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// WatchedConn reports when it is closed.
type WatchedConn struct {
	net.Conn
	Closed func()
}

func (c *WatchedConn) Close() error {
	err := c.Conn.Close()
	c.Closed()
	return err
}
