package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load"
)

// ProtocolVersion is raised when a peer of the former version could misread a message. Both ends must agree.
//
//	GET    /v1/hello                            → Hello
//	GET    /v1/health                           → Health
//	GET    /v1/log                              what the agent had to say, as text
//	PUT    /v1/workloads/{id}[?hold=1&zero_uptime_ns=Z]
//	                                            load.Workload → 201 once prepared and, without hold, started; again: the same answer
//	POST   /v1/workloads/{id}/start?at_uptime_ns=T   a held workload starts then; again: nothing changes
//	GET    /v1/workloads/{id}/intervals?from=N  → record per line, until the end record
//	POST   /v1/workloads/{id}/acknowledge?through=N   intervals up to N may be forgotten
//	POST   /v1/workloads/{id}/stop              the last intervals and the end record follow on the stream
//	DELETE /v1/workloads/{id}                   stop and forget
//
// A request that changes something carries a fencing counter (header Bragg-Fence). An agent remembers the highest and
// refuses lower ones, so that a controller that lost its lease cannot disturb the one that took over; what a lower one started is
// stopped when a higher one is first seen.
//
// Moments are told in the agent's uptime (nanoseconds on its monotonic clock since it started), so that a step of its wall clock
// moves nothing. Z is the uptime at the zero of the run's axis; it may be negative.
const ProtocolVersion = 2

// uptimeMax bounds moments and lengths that are told, so that sums of them do not overflow: about sixty years.
const uptimeMax = int64(1) << 61

const (
	headerBytesMax    = 64 << 10
	workloadBytesMax  = 4 << 20 // a job file has at most 1 MiB
	replyBytesMax     = 1 << 20
	lineBytesMax      = 8 << 20 // an interval with every histogram bucket in use has about 1.5 MiB
	tasksMax          = 64      // started and not yet forgotten
	bufferBytesMax    = 256 << 20
	bufferForDefault  = 20 * time.Minute
	bufferCountMin    = 1200    // intervals
	bufferCountMax    = 200_000 // intervals
	heartbeatEvery    = 5 * time.Second
	acknowledgeEvery  = 16 // intervals
	errorClassesMax   = 64
	devicesMax        = 256
	nameBytesMax      = 4096
	idBytes           = 32
	fenceHeader       = "Bragg-Fence"
	jsonType          = "application/json"
	linesType         = "application/x-ndjson"
	textType          = "text/plain; charset=utf-8"
	codeStaleFence    = "agent-stale-fence"
	codeBadRequest    = "agent-bad-request"
	codeUnknownLoad   = "agent-unknown-workload"
	codeBusy          = "agent-busy"
	codeForeignDevice = "agent-foreign-device"
	codeMisbehaved    = "agent-generator-misbehaved"
	codeGarbled       = "agent-garbled"
	codeVersion       = "agent-version"
	codeNoIdentity    = "agent-no-identity"
	holdKey           = "hold"
	zeroKey           = "zero_uptime_ns"
	startKey          = "at_uptime_ns"
)

// Hello says who an agent is.
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
}

// Health is what an agent is doing.
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
	Prepared  bool            `json:"prepared"`        // devices are open, or that failed
	Running   bool            `json:"running"`
	Produced  int64           `json:"produced"` // intervals so far
	Buffered  int             `json:"buffered"`
	Discarded int64           `json:"discarded"` // intervals that no controller fetched in time
}

// record is one line of a stream: exactly one field is set. A line without content is a heartbeat.
type record struct {
	Interval *interval.Interval `json:"interval,omitempty"`
	Lost     *lostRange         `json:"lost,omitempty"`
	End      *endRecord         `json:"end,omitempty"`
}

// lostRange says that intervals From to Through were discarded because nobody fetched them in time.
type lostRange struct {
	From    int64 `json:"from"`
	Through int64 `json:"through"`
}

// endRecord closes a stream. Next is the number of intervals that the workload made.
type endRecord struct {
	Next  int64      `json:"next"`
	Error *wireError `json:"error,omitempty"`
}

// wireError is an error of the agent's, and whether load.ErrLost is in its chain.
type wireError struct {
	diag.Wire
	Lost bool `json:"lost,omitempty"`
}

func toWire(err error) *wireError {
	if err == nil {
		return nil
	}
	return &wireError{Wire: diag.ToWire(err), Lost: errors.Is(err, load.ErrLost)}
}

func (w *wireError) toError() error {
	switch {
	case w == nil:
		return nil
	case w.Lost && !w.List.HasErrors():
		return fmt.Errorf("%w: %s", load.ErrLost, w.Message)
	}
	return w.Err()
}

// decodeRecord reads one line of a stream. It refuses whatever could make a later reader misbehave.
func decodeRecord(line []byte) (record, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return record{}, fmt.Errorf("read record: %w", err)
	}
	set := 0
	if r.Interval != nil {
		set++
		if err := checkInterval(r.Interval); err != nil {
			return record{}, fmt.Errorf("read interval %d: %w", r.Interval.Sequence, err)
		}
	}
	if r.Lost != nil {
		set++
		if r.Lost.From < 0 || r.Lost.Through < r.Lost.From || r.Lost.Through == math.MaxInt64 {
			return record{}, errors.New("read record: lost range is empty or out of bounds")
		}
	}
	if r.End != nil {
		set++
		if r.End.Next < 0 {
			return record{}, errors.New("read record: negative number of intervals")
		}
	}
	if set != 1 {
		return record{}, errors.New("read record: not exactly one of interval, lost, end")
	}
	return r, nil
}

func checkInterval(iv *interval.Interval) error {
	if iv.Sequence < 0 || iv.Sequence == math.MaxInt64 {
		return errors.New("sequence out of bounds")
	}
	if iv.LengthNanos < 0 || iv.LengthNanos > uptimeMax || iv.StartNanos < -uptimeMax || iv.StartNanos > uptimeMax {
		return errors.New("time out of bounds")
	}
	if len(iv.Devices) > devicesMax {
		return fmt.Errorf("%d devices, want at most %d", len(iv.Devices), devicesMax)
	}
	for name := range iv.Devices {
		if len(name) > nameBytesMax {
			return errors.New("device name too long")
		}
	}
	for d := range iv.Directions {
		errors := iv.Directions[d].Errors
		if len(errors) > errorClassesMax {
			return fmt.Errorf("%d classes of errors, want at most %d", len(errors), errorClassesMax)
		}
		for class := range errors {
			if len(class) > nameBytesMax {
				return fmt.Errorf("class of errors has %d bytes", len(class))
			}
		}
	}
	return nil
}

// validID tells whether id is one that a Client made: 32 hexadecimal digits.
func validID(id string) bool {
	if len(id) != idBytes {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
