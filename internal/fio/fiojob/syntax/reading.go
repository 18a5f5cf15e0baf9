package syntax

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How fio uses a list of numbers, by option.
const (
	// byDirection lists options with separate numbers for reads, writes and trims.
	byDirection = " bs ba rate rate_min rate_iops rate_iops_min percentage_random max_latency cmdprio_percentage cmdprio_class cmdprio "
	// lastCounts lists options that use the last number of a list; the others use the first.
	lastCounts = " size io_size offset offset_increment zoneskip rwmixread rwmixwrite "
	// lowAndHigh lists options that draw from a range.
	lowAndHigh = " filesize startdelay "
	// inSeconds lists times whose default unit is seconds; that of the others is microseconds.
	inSeconds = " runtime ramp_time startdelay steadystate_duration steadystate_ramp_time thinktime_iotime "
	// zeroIsOne lists options for which fio accepts 0 and treats it as 1.
	zeroIsOne = " nrfiles openfiles loops thinktime_blocks "
)

func listed(list, key string) bool { return strings.Contains(list, " "+key+" ") }

func unitOf(key string) time.Duration {
	if listed(inSeconds, key) {
		return time.Second
	}
	return time.Microsecond
}

// ReadExactly replaces the text of the option by an unambiguous one with the meaning that fio 3.33 gives to the original.
// It returns false after reporting what fio refuses.
func (a *Value) ReadExactly() bool {
	switch a.Kind {
	case KindText, kindRange, kindSplit, kindList:
		a.Text, a.Option.Exact = a.Seen, a.Seen
		if a.Kind == kindRange || a.Kind == kindSplit {
			a.Text = strings.TrimSpace(a.Seen)
		}
		return true
	case KindChoice:
		if a.Raw.BlankBefore {
			a.RefusedByFio(a.Text)
			return false
		}
		return true
	}
	if a.Raw.Bare {
		if a.Kind != KindFlag {
			a.Problem("bad-value", fmt.Sprintf("%s has no value", a.Option.Key), "")
		}
		return a.Kind == KindFlag
	}
	parts := exactParts(a.Seen, func(text string) (Number, bool) {
		switch a.Kind {
		case KindTime:
			return ExactTime(text, unitOf(a.Option.Key))
		case KindSwitch, KindFlag:
			return exactSwitch(text)
		}
		return ExactNumber(text, a.KB)
	})
	for _, p := range parts {
		if p.ok {
			a.Option.Numbers = append(a.Option.Numbers, p.Number)
		}
	}
	parts, ok := a.counted(parts)
	if !ok {
		return false
	}
	a.settle(parts)
	return true
}

// counted selects the numbers of a list that fio uses, and reports invalid ones.
func (a *Value) counted(parts []exactPart) ([]exactPart, bool) {
	key := a.Option.Key
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
		a.Bad("fio finds no number")
		return nil, false
	}
	for _, p := range parts {
		switch {
		case p.Percent && a.Kind != KindSize && key != "filesize":
			a.Bad(fmt.Sprintf("a percentage is not possible here; fio itself reads %d", -1-p.Value))
			return nil, false
		case p.Percent && (p.Value < 0 || p.Value > PercentMax):
			a.Bad("want a percentage from 0 to 100; fio itself takes this for an enormous number")
			return nil, false
		case (a.Kind == KindSwitch || a.Kind == KindFlag) && (p.Value < 0 || a.Kind == KindSwitch && p.Value > 1):
			a.Bad("want 0 or 1")
			return nil, false
		}
	}
	return parts, true
}

// settle writes the numbers in the unambiguous form, and warns if their value is surprising.
func (a *Value) settle(parts []exactPart) {
	texts := make([]string, len(parts))
	for i, p := range parts {
		switch {
		case !p.ok:
		case a.Kind == KindSwitch || a.Kind == KindFlag:
			texts[i] = strconv.FormatInt(min(p.Value, 1), 10)
		case listed(zeroIsOne, a.Option.Key) && p.Value == 0:
			texts[i] = "1"
		case p.Percent:
			texts[i] = strconv.FormatInt(p.Value, 10) + "%"
		case a.Kind == KindTime:
			texts[i] = strconv.FormatInt(p.Value, 10) + "us"
		default:
			texts[i] = strconv.FormatInt(p.Value, 10)
		}
	}
	separator := ","
	if listed(lowAndHigh, a.Option.Key) {
		separator = "-"
	}
	text := strings.Join(texts, separator)
	if len(parts) == 1 || listed(byDirection, a.Option.Key) {
		a.surprise(text)
	}
	a.Text, a.Seen, a.Option.Exact = text, text, text
	a.Raw.BlankBefore = false
}

// surprise warns, in the exact reading, if the author probably meant something else.
func (a *Value) surprise(taken string) {
	parts := []string{a.Seen}
	if listed(byDirection, a.Option.Key) {
		parts = strings.Split(a.Seen, ",")
	}
	for _, text := range parts {
		if strings.TrimSpace(text) == "" || a.Kind == KindSwitch || a.Kind == KindFlag {
			continue
		}
		var literal, meaning string
		var err error
		if a.Kind == KindTime {
			var d time.Duration
			d, literal, err = readTime(text, unitOf(a.Option.Key))
			meaning = FormatTime(d)
		} else {
			var n MeantNumber
			n, err = ReadNumber(text, a.KB)
			literal, meaning = n.Literal, shortNumber(n.Value, a.KB)
			if n.IsPercent {
				meaning = strconv.FormatFloat(n.Percent, 'f', -1, 64) + " %"
			}
		}
		message := fmt.Sprintf("%s is read as %s, as fio reads it", a.Written(), taken)
		switch {
		case err != nil:
			a.Warn("read-as-fio", message, "")
			return
		case literal != "":
			hint := fmt.Sprintf("write %s=%s", a.Option.Key, meaning)
			if strings.HasSuffix(meaning, "%") {
				hint = "write whole percentages or bytes"
			}
			a.Warn("read-as-fio", message+"; probably "+meaning+" was meant", hint)
			return
		}
	}
}

// Numbers checks and records the numbers of an option whose value is not used.
func (a *Value) Numbers() {
	if a.Reading == Exact {
		return
	}
	switch texts := strings.Split(a.Seen, ","); {
	case strings.Trim(a.Text, ", \t") == "":
		a.Bad("want a number")
		return
	case len(texts) == 1, listed(byDirection, a.Option.Key) && len(texts) <= 3:
		a.numberList(texts)
		return
	}
	first, _, _ := strings.Cut(a.Seen, ",")
	a.Warn("several-values", fmt.Sprintf("%s: one number is possible, the first counts", a.Written()),
		fmt.Sprintf("write %s=%s", a.Option.Key, strings.TrimSpace(first)))
	a.numberList([]string{first})
}

func (a *Value) numberList(texts []string) {
	exact, changed := make([]string, len(texts)), false
	high := int64(math.MaxInt64)
	if strings.Contains(a.Option.Key, "percent") {
		high = PercentMax
	}
	for i, text := range texts {
		if exact[i] = strings.TrimSpace(text); exact[i] == "" && len(texts) > 1 {
			continue
		}
		shown := len(a.Problems.List)
		if a.Kind == KindTime {
			d, ok := a.Time(text, unitOf(a.Option.Key))
			if !ok {
				return
			}
			changed = changed || len(a.Problems.List) > shown
			exact[i] = FormatTime(d)
			continue
		}
		v, ok := a.Number(text, math.MinInt64, high)
		if !ok {
			return
		}
		if len(a.Problems.List) > shown {
			changed, exact[i] = true, FormatBytes(v)
		}
	}
	if changed || a.Raw.BlankBefore {
		a.Option.Exact = strings.Join(exact, ",")
	}
}
