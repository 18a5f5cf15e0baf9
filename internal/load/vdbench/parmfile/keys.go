package parmfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braggdev/bragg/internal/diag"
)

// spec is a parameter that vdbench has.
type spec struct {
	key     string
	check   func(Parameter) string // what is wrong with its values
	repeats bool
	once    bool // a second one is an error; of others the last one counts
}

var dedup = []spec{
	{key: "dedupratio", check: one(number)}, {key: "dedupsets", check: one(anything)}, {key: "deduphotsets", check: list(anything)},
	{key: "dedupflipflop", check: one(oneOf("no", "yes", "hot", "on", "off"))},
}

// specs are the parameters by kind, as the user's guide of vdbench 5.04.07 lists them.
var specs = map[Kind][]spec{
	General: slices.Concat(dedup, []spec{
		{key: "abort_failed_skew", check: one(number)}, {key: "compratio", check: one(number)}, {key: "concatenatesds", check: yesNo},
		{key: "create_anchors", check: yesNo}, {key: "data_errors", check: one(anything)}, {key: "debug", check: list(anything)},
		{key: "dedupunit", check: one(size)}, {key: "endcmd", check: list(anything)}, {key: "formatsds", check: one(anything)},
		{key: "formatxfersize", check: one(size)}, {key: "fwd_thread_adjust", check: yesNo}, {key: "histogram", check: list(anything)},
		{key: "include", check: one(anything), repeats: true}, {key: "ios_per_jvm", check: one(number)}, {key: "journal", check: list(anything)},
		{key: "loop", check: one(anything)}, {key: "messagescan", check: one(anything)}, {key: "monitor", check: one(anything)},
		{key: "pattern", check: list(anything)}, {key: "port", check: one(number)}, {key: "report", check: list(anything), repeats: true},
		{key: "report_run_totals", check: yesNo}, {key: "showlba", check: yesNo}, {key: "startcmd", check: list(anything)},
		{key: "timeout", check: list(anything)}, {key: "validate", check: list(anything)},
	}),
	Host: {
		{key: "master", check: one(anything)}, {key: "system", check: one(anything)}, {key: "vdbench", check: one(anything)}, {key: "jvms", check: one(number)},
		{key: "shell", check: one(anything)}, {key: "user", check: one(anything)}, {key: "clients", check: one(number)}, {key: "mount", check: list(anything)},
	},
	Replay: {{key: "devices", check: list(anything)}},
	Storage: slices.Concat(dedup, []spec{
		{key: "align", check: one(size)}, {key: "count", check: pair(number)}, {key: "hitarea", check: one(size)},
		{key: "host", check: list(anything), repeats: true}, {key: "journal", check: one(anything)}, {key: "lun", check: one(anything), repeats: true},
		{key: "offset", check: one(size)}, {key: "openflags", check: list(flag), once: true}, {key: "range", check: pair(size)}, {key: "replay", check: list(anything)},
		{key: "resetbus", check: one(number)}, {key: "resetlun", check: one(number)}, {key: "size", check: one(size)}, {key: "streams", check: list(size)},
		{key: "threads", check: one(count)},
	}),
	FileSystem: slices.Concat(dedup, []spec{
		{key: "anchor", check: one(anything)}, {key: "count", check: pair(number)}, {key: "depth", check: one(count)},
		{key: "distribution", check: one(oneOf("all", "bottom"))}, {key: "files", check: one(count)}, {key: "journal", check: one(anything)},
		{key: "mask", check: list(anything)}, {key: "openflags", check: list(flag), once: true}, {key: "shared", check: yesNo}, {key: "sizes", check: mixOrRange},
		{key: "totalsize", check: one(size)}, {key: "width", check: one(count)}, {key: "workingsetsize", check: one(size)}, {key: "wss", check: one(size)},
	}),
	Workload: {
		{key: "sd", check: list(anything)}, {key: "host", check: list(anything)}, {key: "hotband", check: pair(size)}, {key: "iorate", check: one(number)},
		{key: "openflags", check: list(flag), once: true}, {key: "priority", check: one(count)}, {key: "range", check: pair(size)}, {key: "rdpct", check: one(percent)},
		{key: "rhpct", check: one(percent)}, {key: "seekpct", check: list(seek)}, {key: "skew", check: one(percent)}, {key: "streams", check: list(size)},
		{key: "stride", check: pair(size)}, {key: "threads", check: one(count)}, {key: "whpct", check: one(percent)}, {key: "xfersize", check: mixOrRange},
	},
	FileWork: {
		{key: "fsd", check: list(anything)}, {key: "host", check: list(anything)}, {key: "openflags", check: list(flag), once: true},
		{key: "fileio", check: list(oneOf("random", "seq", "sequential", "shared", "delete", "seqdelete"))}, {key: "fileselect", check: list(anything)},
		{key: "operation", check: one(operation)}, {key: "rdpct", check: one(percent)}, {key: "skew", check: one(percent)},
		{key: "stopafter", check: one(anything)}, {key: "threads", check: one(count)}, {key: "xfersize", check: mixOrRange},
	},
	Run: {
		{key: "wd", check: list(anything), once: true}, {key: "sd", check: list(anything)}, {key: "fwd", check: list(anything)}, {key: "fwdrate", check: loop(rate)},
		{key: "format", check: list(oneOf("yes", "no", "only", "restart", "clean", "once", "directories", "limited", "complete"))},
		{key: "operations", check: list(operation)}, {key: "foroperations", check: list(operation)}, {key: "fordepth", check: loop(count)},
		{key: "forwidth", check: loop(count)}, {key: "forfiles", check: loop(count)}, {key: "forsizes", check: loop(size)}, {key: "fortotal", check: loop(size)},
		{key: "curve", check: loop(number)}, {key: "stopcurve", check: one(number)},
		{key: "distribution", check: list(oneOf("exponential", "uniform", "deterministic", "variable", "spike", "e", "u", "d", "v", "s"))},
		{key: "elapsed", check: one(seconds)}, {key: "endcmd", check: list(anything)}, {key: "forcompratio", check: loop(number)},
		{key: "forhitarea", check: loop(size)}, {key: "forhpct", check: loop(percent)}, {key: "forrhpct", check: loop(percent)},
		{key: "forwhpct", check: loop(percent)}, {key: "forrdpct", check: loop(percent)}, {key: "forseekpct", check: loop(seek)},
		{key: "forthreads", check: loop(count)}, {key: "forxfersize", check: loop(size)}, {key: "interval", check: one(seconds)},
		{key: "iorate", check: loop(rate)}, {key: "maxdata", check: one(size)}, {key: "maxdata_read", check: one(size)}, {key: "maxdata_written", check: one(size)},
		{key: "mount", check: list(anything)}, {key: "openflags", check: list(flag), once: true}, {key: "pause", check: one(seconds)}, {key: "replay", check: list(anything)},
		{key: "startcmd", check: list(anything)}, {key: "warmup", check: one(seconds)},
	},
}

// loopWithoutFor are the loops of a run that may also be written without "for".
var loopWithoutFor = []string{"compratio", "hitarea", "hpct", "rhpct", "whpct", "rdpct", "seekpct", "threads", "xfersize", "depth", "width", "files", "sizes", "total"}

// hostKinds have host, which may also be written hd.
var hostKinds = []Kind{Storage, Workload, FileWork}

// takes reports whether definitions of a kind have a parameter that is also the key of definitions, such as sd of wd.
func takes(kind Kind, key string) bool {
	return key == string(Host) && slices.Contains(hostKinds, kind) || slices.Contains(keysOf(kind), key)
}

// abbreviationMin is the least length of an abbreviated key.
const abbreviationMin = 2

// find returns the parameter that a key stands for: its name, or an abbreviation that fits only one.
func find(kind Kind, key string) (s spec, problem, hint string) {
	all := specs[kind]
	full := key
	if kind == Run && slices.Contains(loopWithoutFor, key) {
		full = "for" + key
	}
	if key == string(Host) && slices.Contains(hostKinds, kind) {
		full = "host"
	}
	var fits []string
	for _, one := range all {
		if one.key == full {
			return one, "", ""
		}
		if len(key) >= abbreviationMin && (strings.HasPrefix(one.key, key) || kind == Run && strings.HasPrefix(one.key, "for"+key)) {
			fits, s = append(fits, one.key), one
		}
	}
	switch {
	case len(fits) == 1:
		return s, "", ""
	case len(fits) > 1:
		return spec{}, fmt.Sprintf("%s stands for several parameters of %s", quote(key), kind), strings.Join(fits, ", ")
	}
	if near := diag.Nearest(key, keysOf(kind)); near != "" {
		hint = "did you mean " + quote(near) + "?"
	}
	for _, other := range kinds {
		if hint == "" && other != kind && slices.Contains(keysOf(other), key) {
			hint = fmt.Sprintf("it is a parameter of %s", other)
		}
	}
	return spec{}, fmt.Sprintf("%s has no parameter %s", kind, quote(key)), hint
}

func keysOf(kind Kind) (keys []string) {
	for _, s := range specs[kind] {
		keys = append(keys, s.key)
	}
	return keys
}
