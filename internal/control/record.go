package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/braggdev/bragg/internal/scenario"
	"github.com/braggdev/bragg/internal/target"
)

// journalFormat is raised when a reader of the previous version could misread a journal.
const journalFormat = 1

// recordBytesMax bounds one line of a journal. A longer line counts as damage.
const recordBytesMax = 4 << 20

// recordKind is the kind of a record.
type recordKind string

const (
	recordHeader    recordKind = "header"    // first: who, where, the tag
	recordPhase     recordKind = "phase"     // a phase began
	recordIntent    recordKind = "intent"    // about to change something outside; synced before it is done
	recordDone      recordKind = "done"      // the intent with that number was carried out
	recordUndone    recordKind = "undone"    // the thing is as it was before the run
	recordAbandoned recordKind = "abandoned" // the user gave up undoing; open things stay open
	recordEnded     recordKind = "ended"     // nothing is left to undo
)

// record is one line of a journal.
type record struct {
	Seq    uint64     `json:"seq"`
	At     time.Time  `json:"at"`
	Kind   recordKind `json:"kind"`
	Header *Header    `json:"header,omitempty"`
	Thing  *Thing     `json:"thing,omitempty"`
	Ref    uint64     `json:"ref,omitempty"`
	Text   string     `json:"text,omitempty"`
}

// Header is the first record of a journal: all data that undo needs.
type Header struct {
	Format   int        `json:"format"`
	Run      string     `json:"run"`
	Tag      target.Tag `json:"tag"`
	Scenario string     `json:"scenario"`
	// Target is what the session needs to open the target again; it holds references to credentials, never credentials.
	Target json.RawMessage `json:"target,omitempty"`
	// Lease is the fencing number under which the run began.
	Lease uint64 `json:"lease"`
}

// ThingKind is the kind of outside thing that a run has changed.
type ThingKind string

const (
	ThingVMs     ThingKind = "vms"      // VMs that carry the tag
	ThingNodeOff ThingKind = "node-off" // a node that this run powered off or shut down
	ThingStep    ThingKind = "step"     // the effects of an Undoer
)

// Thing is something outside that a run creates or changes, with the data that undo needs.
type Thing struct {
	Kind  ThingKind      `json:"kind"`
	Names []string       `json:"names,omitempty"` // of VMs, or of the node, for readers; undo queries the target for VMs with the tag
	Node  string         `json:"node,omitempty"`  // id
	Soft  bool           `json:"soft,omitempty"`  // a shutdown of the node's system was requested, which may take minutes
	Call  *scenario.Call `json:"call,omitempty"`  // of an Undoer, with its arguments
	Step  int            `json:"step,omitempty"`  // id of the step
}

// key distinguishes things: all VMs of a run are one thing, each node and each step is one.
func (t Thing) key() string { return fmt.Sprintf("%s/%s/%d", t.Kind, t.Node, t.stepIfStep()) }

func (t Thing) stepIfStep() int {
	if t.Kind == ThingStep {
		return t.Step
	}
	return 0
}

// String describes the thing for readers.
func (t Thing) String() string {
	switch t.Kind {
	case ThingNodeOff:
		return fmt.Sprintf("node %q is powered off", t.nodeName())
	case ThingStep:
		return fmt.Sprintf("step %s is not undone", t.Call.Name)
	}
	return "VMs of the run exist"
}

// Reverted describes for readers what undid the thing.
func (t Thing) Reverted() string {
	switch t.Kind {
	case ThingNodeOff:
		return fmt.Sprintf("powered on node %q", t.nodeName())
	case ThingStep:
		return "undid step " + t.Call.Name
	}
	return "removed the VMs of the run"
}

// nodeName is the name of the node for readers; journals of earlier versions have only its id.
func (t Thing) nodeName() string {
	if len(t.Names) > 0 {
		return t.Names[0]
	}
	return t.Node
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodeRecord returns the line of a record: CRC-32C of the JSON in eight hex digits, a blank, the JSON, a line feed.
func encodeRecord(r record) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode journal record %d: %w", r.Seq, err)
	}
	if len(body) > recordBytesMax {
		return nil, fmt.Errorf("encode journal record %d: %d bytes are more than %d", r.Seq, len(body), recordBytesMax)
	}
	line := fmt.Appendf(make([]byte, 0, len(body)+10), "%08x ", crc32.Checksum(body, castagnoli))
	return append(append(line, body...), '\n'), nil
}

// decodeRecords reads records up to the first that is cut, damaged or out of order, and returns how many bytes are good. Later
// records were never acted on, because a record is synced before its action begins.
func decodeRecords(data []byte) (records []record, good int) {
	for good < len(data) {
		end := bytes.IndexByte(data[good:], '\n')
		if end < 10 || end > recordBytesMax+10 {
			return records, good
		}
		line := data[good : good+end]
		if string(line[:9]) != fmt.Sprintf("%08x ", crc32.Checksum(line[9:], castagnoli)) {
			return records, good
		}
		var r record
		if json.Unmarshal(line[9:], &r) != nil || r.Seq != uint64(len(records)+1) {
			return records, good
		}
		if (r.Kind == recordHeader) != (r.Seq == 1) || (r.Kind == recordHeader && r.Header == nil) {
			return records, good
		}
		records = append(records, r)
		good += end + 1
	}
	return records, good
}
