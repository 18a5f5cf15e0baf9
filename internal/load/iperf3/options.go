package iperf3

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/unit"
)

// config is the configuration of one workload.
type config struct {
	streams    int // of each pair and direction
	sends      bool
	receives   bool
	udp        bool
	bitrate    int64 // of each stream, bits per second; 0: as fast as it goes
	block      int64 // bytes of a write; 0: iperf3's own
	window     int64 // bytes of the socket's buffers; 0: the system's
	congestion string
	zerocopy   bool
	omit       time.Duration
}

// Bounds of iperf3 itself.
const (
	streamsMax = 128
	omitMax    = 60 * time.Second
	blockMax   = unit.MiB
	windowMax  = 512 * unit.MiB
	bitrateMax = int64(1e13)
)

var optionNames = []string{"bitrate", "block", "congestion", "direction", "omit", "protocol", "streams", "window", "zerocopy"}

var congestionPattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,15}$`)

// parse reads the options of a workload and reports everything that is wrong with them.
func parse(w *load.Workload) (*config, error) {
	c := &config{streams: 1}
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(w.Options)) {
		if !slices.Contains(optionNames, name) {
			fault("%s: unknown option; there are %s", name, strings.Join(optionNames, ", "))
		}
	}
	c.readTraffic(w.Options, fault)
	c.readSockets(w.Options, fault)
	if w.Prefill {
		fault("there is no data to prefill")
	}
	if w.ConfigName != "" {
		fault("config_file: there is no job file")
	}
	if len(faults) == 0 {
		return c, nil
	}
	return nil, &diag.Error{Code: "bad-generator-option", Exit: diag.ExitData,
		Message: fmt.Sprintf("options of workload %q: %s", w.Name, strings.Join(faults, "; ")),
		Hint:    "docs/guides/network.md lists the options of iperf3"}
}

func (c *config) readTraffic(options map[string]string, fault func(string, ...any)) {
	if text, given := options["streams"]; given {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > streamsMax {
			fault("streams: %q is not a number from 1 to %d", text, streamsMax)
		}
		c.streams = n
	}
	switch text := cmp.Or(options["direction"], "send"); text {
	case "send", "receive", "both":
		c.sends, c.receives = text != "receive", text != "send"
	default:
		fault("direction: %q is not send, receive or both", text)
	}
	switch text := cmp.Or(options["protocol"], "tcp"); text {
	case "tcp", "udp":
		c.udp = text == "udp"
	default:
		fault("protocol: %q is not tcp or udp", text)
	}
	if text, given := options["bitrate"]; given {
		rate, err := parseBits(text)
		if err != nil || rate < 1 || rate > bitrateMax {
			fault("bitrate: %q is not a number of bits per second such as 500M or 10G", text)
		}
		c.bitrate = rate
	} else if c.udp {
		fault("bitrate: UDP has no flow control and needs one")
	}
	if text, given := options["omit"]; given {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 || d > omitMax || d%time.Second != 0 {
			fault("omit: %q is not a whole number of seconds such as 3s, at most %v", text, omitMax)
		}
		c.omit = d
	}
}

func (c *config) readSockets(options map[string]string, fault func(string, ...any)) {
	for name, into := range map[string]struct {
		value *int64
		most  int64
	}{"block": {&c.block, blockMax}, "window": {&c.window, windowMax}} {
		if text, given := options[name]; given {
			n, err := unit.ParseBytes(text)
			if err != nil || n < 16 || n > into.most {
				fault("%s: %q is not a size from 16 bytes to %s", name, text, unit.FormatBytes(into.most))
			}
			*into.value = n
		}
	}
	if c.congestion = options["congestion"]; c.congestion != "" && (c.udp || !congestionPattern.MatchString(c.congestion)) {
		fault("congestion: %q is not an algorithm of TCP such as cubic", c.congestion)
	}
	if text, given := options["zerocopy"]; given {
		on, err := strconv.ParseBool(strings.ToLower(text))
		if err != nil || on && c.udp {
			fault("zerocopy: %q is not true or false, or the protocol is not tcp", text)
		}
		c.zerocopy = on
	}
}

// parseBits reads bits per second with a decimal unit, as iperf3 has them.
func parseBits(text string) (int64, error) {
	number, factor := text, 1.0
	if i := strings.IndexByte("KMGT", strings.ToUpper(text[max(0, len(text)-1):] + " ")[0]); i >= 0 {
		number = text[:len(text)-1]
		for range i + 1 {
			factor *= 1000
		}
	}
	n, err := strconv.ParseFloat(number, 64)
	if err == nil && !(n >= 0 && n*factor <= 1e18) {
		err = strconv.ErrRange
	}
	return int64(n * factor), err
}
