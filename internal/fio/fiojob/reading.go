package fiojob

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How fio uses a list of numbers depends on the option.
const (
	// byDirection lists options with a number for reads, writes and trims.
	byDirection = " bs ba rate rate_min rate_iops rate_iops_min percentage_random max_latency cmdprio_percentage cmdprio_class cmdprio "
	// lastCounts lists options of which the last number of a list holds; of the others it is the first.
	lastCounts = " size io_size offset offset_increment zoneskip rwmixread rwmixwrite "
	// lowAndHigh lists options that draw from a range.
	lowAndHigh = " filesize startdelay "
	// inSeconds lists the times that are seconds without a unit; the others are microseconds.
	inSeconds = " runtime ramp_time startdelay steadystate_duration steadystate_ramp_time thinktime_iotime "
	// zeroIsOne lists options of which fio takes 0 and does what it does for 1.
	zeroIsOne = " nrfiles openfiles loops thinktime_blocks "
)

func listed(list, key string) bool { return strings.Contains(list, " "+key+" ") }

func unitOf(key string) time.Duration {
	if listed(inSeconds, key) {
		return time.Second
	}
	return time.Microsecond
}

// readExactly replaces the text of the option by one that has only one meaning, the one that fio 3.33 gives to what is
// written. It returns false after reporting what fio refuses.
func (a *arg) readExactly() bool {
	switch a.kind {
	case kindText, kindRange, kindSplit, kindList:
		a.text, a.option.Exact = a.seen, a.seen
		if a.kind == kindRange || a.kind == kindSplit {
			a.text = strings.TrimSpace(a.seen)
		}
		return true
	case kindChoice:
		if a.raw.blankBefore {
			a.refusedByFio(a.text)
			return false
		}
		return true
	}
	if a.raw.bare {
		if a.kind != kindFlag {
			a.problem("bad-value", fmt.Sprintf("%s has no value", a.option.Key), "")
		}
		return a.kind == kindFlag
	}
	parts := exactParts(a.seen, func(text string) (Number, bool) {
		switch a.kind {
		case kindTime:
			return exactTime(text, unitOf(a.option.Key))
		case kindSwitch, kindFlag:
			return exactSwitch(text)
		}
		return exactNumber(text, a.kb)
	})
	for _, p := range parts {
		if p.ok {
			a.option.Numbers = append(a.option.Numbers, p.Number)
		}
	}
	parts, ok := a.counted(parts)
	if !ok {
		return false
	}
	a.settle(parts)
	return true
}

// counted picks the numbers of a list that fio uses, and reports what it could not mean.
func (a *arg) counted(parts []exactPart) ([]exactPart, bool) {
	key := a.option.Key
	first := parts[0]
	switch {
	case listed(byDirection, key):
		parts = parts[:min(len(parts), 3)]
	case listed(lowAndHigh, key):
		if parts = parts[:min(len(parts), 2)]; len(parts) == 2 && !parts[1].ok {
			parts = parts[:1]
		}
	case listed(lastCounts, key):
		for _, p := range parts {
			if p.ok {
				first = p
			}
		}
		parts = []exactPart{first}
	default:
		parts = parts[:1]
	}
	if !slices.ContainsFunc(parts, func(p exactPart) bool { return p.ok }) || !listed(byDirection, key) && !parts[0].ok {
		a.bad("fio finds no number")
		return nil, false
	}
	for _, p := range parts {
		switch {
		case p.Percent && a.kind != kindSize && key != "filesize":
			a.bad(fmt.Sprintf("a percentage is not possible here; fio itself reads %d", -1-p.Value))
			return nil, false
		case p.Percent && (p.Value < 0 || p.Value > percentMax):
			a.bad("want a percentage from 0 to 100; fio itself takes this for an enormous number")
			return nil, false
		case (a.kind == kindSwitch || a.kind == kindFlag) && (p.Value < 0 || a.kind == kindSwitch && p.Value > 1):
			a.bad("want 0 or 1")
			return nil, false
		}
	}
	return parts, true
}

// settle writes the numbers in the unambiguous form, and warns where their value is a surprise.
func (a *arg) settle(parts []exactPart) {
	texts := make([]string, len(parts))
	for i, p := range parts {
		switch {
		case !p.ok:
		case a.kind == kindSwitch || a.kind == kindFlag:
			texts[i] = strconv.FormatInt(min(p.Value, 1), 10)
		case listed(zeroIsOne, a.option.Key) && p.Value == 0:
			texts[i] = "1"
		case p.Percent:
			texts[i] = strconv.FormatInt(p.Value, 10) + "%"
		case a.kind == kindTime:
			texts[i] = strconv.FormatInt(p.Value, 10) + "us"
		default:
			texts[i] = strconv.FormatInt(p.Value, 10)
		}
	}
	separator := ","
	if listed(lowAndHigh, a.option.Key) {
		separator = "-"
	}
	text := strings.Join(texts, separator)
	if len(parts) == 1 || listed(byDirection, a.option.Key) {
		a.surprise(text)
	}
	a.text, a.seen, a.option.Exact = text, text, text
	a.raw.blankBefore = false
}

// surprise warns, in the exact reading, where the author has meant something else.
func (a *arg) surprise(taken string) {
	parts := []string{a.seen}
	if listed(byDirection, a.option.Key) {
		parts = strings.Split(a.seen, ",")
	}
	for _, text := range parts {
		if strings.TrimSpace(text) == "" || a.kind == kindSwitch || a.kind == kindFlag {
			continue
		}
		var literal, meaning string
		var err error
		if a.kind == kindTime {
			var d time.Duration
			d, literal, err = readTime(text, unitOf(a.option.Key))
			meaning = formatTime(d)
		} else {
			var n number
			n, err = readNumber(text, a.kb)
			literal, meaning = n.literal, shortNumber(n.value, a.kb)
			if n.isPct {
				meaning = strconv.FormatFloat(n.percent, 'f', -1, 64) + " %"
			}
		}
		message := fmt.Sprintf("%s is read as %s, as fio reads it", a.written(), taken)
		switch {
		case err != nil:
			a.warn("read-as-fio", message, "")
			return
		case literal != "":
			hint := fmt.Sprintf("write %s=%s", a.option.Key, meaning)
			if strings.HasSuffix(meaning, "%") {
				hint = "write whole percentages or bytes"
			}
			a.warn("read-as-fio", message+"; probably "+meaning+" was meant", hint)
			return
		}
	}
}

// numbers checks and keeps the numbers of an option that has no field in Job.
func numbers(j *Job, a *arg) {
	if a.p.options.Reading == Exact {
		return
	}
	switch texts := strings.Split(a.seen, ","); {
	case strings.Trim(a.text, ", \t") == "":
		a.bad("want a number")
		return
	case len(texts) == 1, listed(byDirection, a.option.Key) && len(texts) <= 3:
		a.numberList(texts)
		return
	}
	first, _, _ := strings.Cut(a.seen, ",")
	a.warn("several-values", fmt.Sprintf("%s: one number is possible, the first counts", a.written()),
		fmt.Sprintf("write %s=%s", a.option.Key, strings.TrimSpace(first)))
	a.numberList([]string{first})
}

func (a *arg) numberList(texts []string) {
	exact, changed := make([]string, len(texts)), false
	high := int64(math.MaxInt64)
	if strings.Contains(a.option.Key, "percent") {
		high = percentMax
	}
	for i, text := range texts {
		if exact[i] = strings.TrimSpace(text); exact[i] == "" && len(texts) > 1 {
			continue
		}
		shown := len(a.p.diags)
		if a.kind == kindTime {
			d, ok := a.time(text, unitOf(a.option.Key))
			if !ok {
				return
			}
			changed = changed || len(a.p.diags) > shown
			exact[i] = formatTime(d)
			continue
		}
		v, ok := a.number(text, math.MinInt64, high)
		if !ok {
			return
		}
		if len(a.p.diags) > shown {
			changed, exact[i] = true, FormatBytes(v)
		}
	}
	if changed || a.raw.blankBefore {
		a.option.Exact = strings.Join(exact, ",")
	}
}
