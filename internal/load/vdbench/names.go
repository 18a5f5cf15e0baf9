package vdbench

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load/vdbench/parmfile"
	"github.com/braggdev/bragg/internal/unit"
)

// timesOf names the length of a run as vdbench does.
func timesOf(rd *parmfile.Definition) string {
	text := fmt.Sprintf("elapsed=%g", rd.Seconds("elapsed", 30*time.Second).Seconds())
	if warmup := rd.Seconds("warmup", 0); warmup > 0 {
		text += fmt.Sprintf(" warmup=%g", warmup.Seconds())
	}
	return text
}

// forLoops names the values of a run's loops as vdbench does, and that of its list of rates, "" without one.
func forLoops(rd *parmfile.Definition, loops map[string]string, rate string) string {
	var named []string
	for _, p := range loopsOf(rd) {
		value := loops[p.Key.Text]
		if n, is := parmfile.ParseSize(value); is && p.Key.Text == "forxfersize" {
			value = inUnits(n)
		}
		named = append(named, strings.TrimPrefix(p.Key.Text, "for")+"="+value)
	}
	if rate != "" {
		named = append(named, rate)
	}
	if named == nil {
		return "None"
	}
	return strings.Join(named, " ")
}

// inUnits is a size as vdbench prints it: "4k", "1m".
func inUnits(n int64) string {
	switch {
	case n > 0 && n%unit.MiB == 0:
		return fmt.Sprintf("%dm", n/unit.MiB)
	case n > 0 && n%unit.KiB == 0:
		return fmt.Sprintf("%dk", n/unit.KiB)
	}
	return strconv.FormatInt(n, 10)
}

// fileRunName is the name of a run as vdbench prints it.
func fileRunName(rd *parmfile.Definition, loops map[string]string, rate string, several bool) string {
	loop, end := "", ";"
	if several {
		loop = "fwdrate=" + rate
	}
	if rate == "max" {
		end = "."
	}
	return fmt.Sprintf("RD=%s; %s; fwdrate=%s%s For loops: %s", rd.Name.Text, timesOf(rd), rate, end, forLoops(rd, loops, loop))
}

// shortName names a run in a table.
func shortName(rd *parmfile.Definition, loops map[string]string, r *run) string {
	text := rd.Name.Text
	if named := forLoops(rd, loops, ""); named != "None" {
		text += " " + named
	}
	switch {
	case r.curve > 0:
		return fmt.Sprintf("%s, %g %% of the maximum", text, r.curve)
	case r.rate > 0:
		return text + ", " + strconv.FormatFloat(r.rate, 'f', -1, 64) + "/s"
	}
	return text + ", maximum"
}
