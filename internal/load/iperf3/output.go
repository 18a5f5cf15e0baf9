package iperf3

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// report is one periodic report of a client: what all streams of one pair moved in the same time.
type report struct {
	pair    int
	arrived int64 // on the run's axis
	length  time.Duration
	omitted bool // before the measured time
	streams []stream
}

// stream is one stream in a report, as this end counts it.
type stream struct {
	received    bool // by this end
	bytes       uint64
	retransmits uint64        // of a sending TCP stream
	roundTrip   time.Duration // of a sending TCP stream; 0: unknown
	jitter      time.Duration // of a receiving UDP stream
	lost        uint64        // datagrams of a receiving UDP stream
}

// results are what one end found for all streams; both ends exchange them when a test ends.
type results struct {
	CPU     float64        `json:"cpu_util_total"` // of the process, in percent of one CPU
	Streams []streamResult `json:"streams"`
}

type streamResult struct {
	Bytes       number  `json:"bytes"`
	Retransmits number  `json:"retransmits"` // unknown at the receiving end
	Jitter      float64 `json:"jitter"`      // seconds
	Errors      number  `json:"errors"`      // lost datagrams
	Packets     number  `json:"packets"`
}

// number is a count. -1, which iperf3 prints as 2^64-1, exactly or as a float, is unknown.
type number struct {
	value uint64
	known bool
}

// countMax is the largest count that is taken for one.
const countMax = 1 << 62

// UnmarshalJSON never refuses a number: what cannot be a count is unknown.
func (n *number) UnmarshalJSON(text []byte) error {
	if v, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		*n = number{v, v < countMax}
	} else if f, err := strconv.ParseFloat(string(text), 64); err == nil && f >= 0 && f < countMax {
		*n = number{uint64(f), true}
	} else {
		*n = number{}
	}
	return nil
}

// output reads what a client prints with -V --debug=1 -f k, line by line.
type output struct {
	reverse bool // streams without a role receive

	streams, block int  // as the test started
	threads        bool // from 3.16 on streams run beside the reports: what they move meanwhile may be in the results alone
	local, remote  *results

	lengths    []string // of pending streams
	bytes      []uint64
	roundTrips []time.Duration
	open       report
	span, last string           // time of the open report as iperf3 prints it, and what the previous report was of
	json       *strings.Builder // nil: not within a document
	into       **results
	faults     []string
}

var (
	versionPattern  = regexp.MustCompile(`^iperf (\d{1,4})\.(\d{1,4})`)
	startedPattern  = regexp.MustCompile(`^Starting Test: protocol: \w+, (\d{1,9}) streams, (\d{1,9}) byte blocks`)
	measuredPattern = regexp.MustCompile(`^interval_len (\d{1,9}\.\d+) bytes_transferred (\d{1,19})$`)
	socketPattern   = regexp.MustCompile(`^tcpi_snd_cwnd \d+ tcpi_snd_mss \d+ tcpi_rtt (\d{1,9})$`)
	streamPattern   = regexp.MustCompile(`^\[ *\d+\](?:\[([TR])X-C\])? +([\d.]+-[\d.]+) +sec +[\d.]+ \w+ +[\d.]+ Kbits/sec(.*)$`)
	lossPattern     = regexp.MustCompile(`^ +(\d{1,9}\.\d+) ms +(\d{1,18})/`)
)

// resultsBytesMax bounds a document of results, which has about 200 bytes per stream.
const resultsBytesMax = 1 << 20

// line reads one line, and returns a report once it is complete.
func (o *output) line(text string) (r report, complete bool) {
	switch {
	case strings.HasPrefix(text, "Late receive"): // by a thread, so that it may be within anything else
	case o.json != nil:
		o.document(text)
	case text == "send_results":
		o.json, o.into = &strings.Builder{}, &o.local
	case text == "get_results":
		o.json, o.into = &strings.Builder{}, &o.remote
	case strings.HasPrefix(text, "ignoring short interval"):
		o.lengths, o.bytes = nil, nil
	default:
		return o.measured(text)
	}
	return report{}, false
}

func (o *output) document(text string) {
	o.json.WriteString(text)
	o.json.WriteByte('\n')
	if text != "}" && o.json.Len() < resultsBytesMax {
		return
	}
	found := &results{}
	if err := json.Unmarshal([]byte(o.json.String()), found); err != nil {
		o.faults = append(o.faults, fmt.Sprintf("results: %v", err))
	} else {
		*o.into = found
	}
	o.json = nil
}

func (o *output) measured(text string) (report, bool) {
	if m := versionPattern.FindStringSubmatch(text); m != nil {
		major, _ := strconv.Atoi(m[1])
		minor, _ := strconv.Atoi(m[2])
		o.threads = major > 3 || major == 3 && minor >= 16
	} else if m := startedPattern.FindStringSubmatch(text); m != nil {
		o.streams, _ = strconv.Atoi(m[1])
		o.block, _ = strconv.Atoi(m[2])
	} else if m := socketPattern.FindStringSubmatch(text); m != nil {
		us, _ := strconv.ParseInt(m[1], 10, 64)
		if o.roundTrips = append(o.roundTrips, time.Duration(us)*time.Microsecond); len(o.roundTrips) > 4*streamsMax {
			o.roundTrips = o.roundTrips[2*streamsMax:]
		}
	} else if m := measuredPattern.FindStringSubmatch(text); m != nil && len(o.bytes) < 2*streamsMax {
		n, _ := strconv.ParseUint(m[2], 10, 64)
		o.lengths, o.bytes = append(o.lengths, m[1]), append(o.bytes, n)
	} else if m := streamPattern.FindStringSubmatch(text); m != nil && len(o.bytes) > len(o.open.streams) {
		if len(o.open.streams) == 0 {
			o.span = m[2]
		}
		return o.stream(m[1], m[3])
	}
	return report{}, false
}

// stream reads the line of one stream, the rest of which depends on its protocol and role. The exact figures came before.
func (o *output) stream(role, rest string) (report, bool) {
	i := len(o.open.streams)
	s := stream{bytes: o.bytes[i], received: role == "R" || role == "" && o.reverse}
	if loss := lossPattern.FindStringSubmatch(rest); loss != nil {
		ms, _ := strconv.ParseFloat(loss[1], 64)
		s.jitter = time.Duration(ms * float64(time.Millisecond))
		s.lost, _ = strconv.ParseUint(loss[2], 10, 64)
	} else if words := strings.Fields(rest); !s.received && len(words) >= 3 && !strings.HasPrefix(words[0], "(") { // Retr and Cwnd
		s.retransmits, _ = strconv.ParseUint(words[0], 10, 32)
		if from := len(o.roundTrips) - len(o.bytes); from >= 0 {
			s.roundTrip = o.roundTrips[from+i]
		}
	}
	o.open.omitted = o.open.omitted || strings.Contains(rest, "(omitted)")
	o.open.streams = append(o.open.streams, s)
	if len(o.open.streams) < len(o.bytes) {
		return report{}, false
	}
	r := o.open
	r.length, _ = time.ParseDuration(o.lengths[0] + "s")
	// iperf3 that ends with an error prints its last interval again, from the same figures.
	of := fmt.Sprint(o.span, o.lengths, o.bytes, r.omitted)
	repeated := of == o.last
	o.open, o.lengths, o.bytes, o.last = report{}, nil, nil, of
	return r, !repeated
}
