package parmfile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A kind of value returns what is wrong with a text, "" if nothing is.
type valueKind func(text string) string

func anything(string) string { return "" }

func number(text string) string {
	if v, err := strconv.ParseFloat(text, 64); err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return fmt.Sprintf("%s is not a number", quote(text))
	}
	return ""
}

// countMax bounds threads, files and the like.
const countMax = 1_000_000_000

func count(text string) string {
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > countMax {
		return fmt.Sprintf("%s is not a whole number from 1 on", quote(text))
	}
	return ""
}

func percent(text string) string {
	if v, err := strconv.ParseFloat(text, 64); err != nil || !(v >= 0 && v <= 100) {
		return fmt.Sprintf("%s is not a percentage", quote(text))
	}
	return ""
}

func size(text string) string {
	if _, ok := ParseSize(text); !ok {
		return fmt.Sprintf("%s is not a size such as 4k, 10m or 1g", quote(text))
	}
	return ""
}

func seconds(text string) string {
	if _, ok := ParseSeconds(text); !ok {
		return fmt.Sprintf("%s is not a time in seconds, or such as 30m or 2h", quote(text))
	}
	return ""
}

func seek(text string) string {
	switch strings.ToLower(text) {
	case "random", "seq", "sequential", "seqnz", "sequentialnz", "eof", "-1", "poisson", "rand":
		return ""
	}
	return percent(text)
}

func rate(text string) string {
	if t := strings.ToLower(text); t == "max" || t == "curve" {
		return ""
	}
	if v := ParseRate(text); v > 0 && !math.IsInf(v, 0) {
		return ""
	}
	if problem := number(text); problem != "" {
		return problem
	}
	return fmt.Sprintf("%s is not a rate: want operations per second above 0, or max", quote(text))
}

// ParseRate reads operations per second, which may have the unit of a size: 1k is 1024. Other text is 0.
func ParseRate(text string) float64 {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v
	}
	n, _ := ParseSize(text)
	return float64(n)
}

func flag(text string) string {
	text = strings.ToLower(text)
	if slices.Contains([]string{"o_direct", "directio", "directio_off", "o_sync", "o_dsync", "o_rsync", "fsync", "clear_cache", "f_nocache"}, text) {
		return ""
	}
	if _, err := strconv.ParseUint(text, 0, 32); err != nil {
		return fmt.Sprintf("%s is not o_direct, directio, o_sync, o_dsync, o_rsync, fsync or a number", quote(text))
	}
	return ""
}

var operationNames = []string{"read", "write", "mkdir", "rmdir", "create", "delete", "open", "close", "getattr", "setattr", "access", "copy", "move"}

func operation(text string) string { return oneOf(operationNames...)(text) }

func oneOf(names ...string) valueKind {
	return func(text string) string {
		if slices.Contains(names, strings.ToLower(text)) {
			return ""
		}
		return fmt.Sprintf("%s is not one of %s", quote(text), strings.Join(names, ", "))
	}
}

func one(kind valueKind) func(Parameter) string {
	return func(p Parameter) string {
		if len(p.Values) > 1 {
			return "one value, not a list"
		}
		return kind(p.Values[0].Text)
	}
}

func list(kind valueKind) func(Parameter) string {
	return func(p Parameter) string {
		for _, v := range p.Values {
			if problem := kind(v.Text); problem != "" {
				return problem
			}
		}
		return ""
	}
}

func yesNo(p Parameter) string { return one(oneOf("yes", "no", "y", "n"))(p) }

func pair(kind valueKind) func(Parameter) string {
	return func(p Parameter) string {
		if len(p.Values) != 2 {
			return "two values in parentheses"
		}
		return list(kind)(p)
	}
}

// loop checks the values of a loop: single ones, (4k,8k), (1-64,d) or (10-100,10).
func loop(kind valueKind) func(Parameter) string {
	return func(p Parameter) string {
		_, problem := p.expand(kind)
		return problem
	}
}

// mixOrRange checks sizes: one, pairs with percentages that sum to 100, or (min,max,align).
func mixOrRange(p Parameter) string {
	if len(p.Values) == 3 {
		return list(size)(p)
	}
	_, problem := p.mix()
	return problem
}

// ParseSize reads bytes: 512, 4k, 10m, 1g, 2t.
func ParseSize(text string) (int64, bool) {
	text, shift := strings.ToLower(text), 0
	if n := len(text); n > 0 {
		if at := strings.IndexByte("kmgtp", text[n-1]); at >= 0 {
			text, shift = text[:n-1], 10*(at+1)
		}
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n) << shift, err == nil && n <= math.MaxInt64>>shift
}

// secondsMax is the longest time, which is far longer than any run.
const secondsMax = 10 * 365 * 24 * 3600

// ParseSeconds reads a time: seconds, or minutes or hours with the suffix m or h.
func ParseSeconds(text string) (time.Duration, bool) {
	text, factor := strings.ToLower(text), 1.0
	if n := len(text); n > 0 {
		if f, has := map[byte]float64{'s': 1, 'm': 60, 'h': 3600}[text[n-1]]; has {
			text, factor = text[:n-1], f
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v*factor <= secondsMax) {
		return 0, false
	}
	return time.Duration(v * factor * float64(time.Second)), true
}

// Share is one size of a mix.
type Share struct {
	Bytes   int64
	Percent float64
}

// mix reads one size, or pairs of size and percentage.
func (p Parameter) mix() (shares []Share, problem string) {
	if len(p.Values) == 1 {
		n, ok := ParseSize(p.Values[0].Text)
		if !ok {
			return nil, size(p.Values[0].Text)
		}
		if n == 0 {
			return nil, "a transfer of 0 bytes is not a load"
		}
		return []Share{{n, 100}}, ""
	}
	if len(p.Values)%2 != 0 {
		return nil, "want pairs of a size and its percentage"
	}
	sum := 0.0
	for i := 0; i < len(p.Values); i += 2 {
		n, ok := ParseSize(p.Values[i].Text)
		v, err := strconv.ParseFloat(p.Values[i+1].Text, 64)
		if !ok || n == 0 || err != nil || !(v > 0 && v <= 100) {
			return nil, fmt.Sprintf("%s,%s is not a size and its percentage", short(p.Values[i].Text), short(p.Values[i+1].Text))
		}
		shares = append(shares, Share{n, v})
		sum += v
	}
	if math.Abs(sum-100) > 1e-6 {
		return nil, fmt.Sprintf("the percentages sum to %g, not to 100", sum)
	}
	return shares, ""
}

// Mix returns the sizes of a parameter that Parse accepted, nil for (min,max,align).
func (p Parameter) Mix() []Share {
	shares, _ := p.mix()
	return shares
}

// Expand returns the values of a loop of sizes, numbers or words that Parse accepted.
func (p Parameter) Expand() []string {
	values, _ := p.expand(anything)
	return values
}

func (p Parameter) expand(kind valueKind) (values []string, problem string) {
	texts := make([]string, len(p.Values))
	for i, v := range p.Values {
		texts[i] = v.Text
	}
	from, to, isRange := strings.Cut(texts[0], "-")
	step := texts[len(texts)-1]
	switch {
	case isRange && from != "" && len(texts) == 2:
	case len(texts) == 3 && step == "d":
		from, to = texts[0], texts[1]
	case len(texts) == 1 && isRange && from != "":
		return nil, "a range needs a step: (10-100,10) or (1-64,d)"
	default:
		for _, t := range texts {
			if problem := kind(t); problem != "" {
				return nil, problem
			}
		}
		return texts, ""
	}
	low, lowOK := ParseSize(from)
	high, highOK := ParseSize(to)
	by, stepOK := ParseSize(step)
	if !lowOK || !highOK || !(stepOK && by > 0 || step == "d") || low == 0 && step == "d" || high == 0 && step == "d" {
		return nil, fmt.Sprintf("(%s) is not a range with a step", short(strings.Join(texts, ",")))
	}
	if step != "d" && low > high {
		return nil, fmt.Sprintf("of a range that goes down by a step, vdbench runs only %s: write the values out, or halve them with (64-1,d)", from)
	}
	for v := low; low <= high && v <= high || low > high && v >= high; {
		if len(values) >= loopMax {
			return nil, fmt.Sprintf("more than %d values", loopMax)
		}
		if problem := kind(strconv.FormatInt(v, 10)); problem != "" {
			return nil, problem
		}
		values = append(values, strconv.FormatInt(v, 10))
		switch {
		case step != "d" && v > math.MaxInt64-by, step == "d" && low <= high && v > math.MaxInt64/2:
			return values, ""
		case step != "d":
			v += by
		case low <= high:
			v *= 2
		default:
			v /= 2
		}
	}
	return values, ""
}

// Number returns a numeric value.
func (d *Definition) Number(key string, fallback float64) float64 {
	if v, err := strconv.ParseFloat(d.Word(key).Text, 64); err == nil {
		return v
	}
	return fallback
}

// Size returns a size in bytes.
func (d *Definition) Size(key string) (int64, bool) { return ParseSize(d.Word(key).Text) }

// Seconds returns a time.
func (d *Definition) Seconds(key string, fallback time.Duration) time.Duration {
	if v, ok := ParseSeconds(d.Word(key).Text); ok {
		return v
	}
	return fallback
}
