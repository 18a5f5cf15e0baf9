package syntax

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// PatternBytesMax bounds a pattern. fio 3.33 accepts 512 bytes and later versions 128 MiB, more than a block of any job.
const PatternBytesMax = 1 << 20

// ReadPattern reads a sequence of hexadecimal bytes 0x…, decimal numbers and texts in double quotes, and, if offsets is
// set, %o, whose places it lists. file reads a part in single quotes, the name of a file, and reports its errors.
func ReadPattern(a *Value, offsets bool, file func(text string) (part []byte, rest string, ok bool)) (pattern []byte, places []int, ok bool) {
	want := `0x and hexadecimal digits, a decimal number of 32 bits, or a text in double quotes, one or more of them`
	example := `0xdeadbeef or "text"`
	if offsets {
		want, example = "%o, "+want, `0xdeadbeef, "text" or %o`
	}
	for rest := a.Text; rest != ""; {
		if after, found := strings.CutPrefix(rest, "%o"); offsets && found {
			places = append(places, len(pattern))
			pattern, rest = binary.LittleEndian.AppendUint64(pattern, 0), after
			continue
		}
		part, after, isFile := patternPart(rest)
		if isFile {
			if part, after, ok = file(rest); !ok {
				return nil, nil, false
			}
		}
		if len(part) == 0 {
			a.Bad("want " + want)
			return nil, nil, false
		}
		pattern, rest = append(pattern, part...), after
	}
	switch {
	case len(pattern) == 0:
		a.Bad("want a pattern, such as " + example)
	case len(pattern) > PatternBytesMax:
		a.Bad("a pattern has at most " + strconv.Itoa(PatternBytesMax) + " bytes")
	default:
		return pattern, places, true
	}
	return nil, nil, false
}

// patternPart reads the first part of text and returns its bytes, none if it is invalid. fio accepts leading blanks only
// before numbers.
func patternPart(text string) (part []byte, rest string, file bool) {
	switch text[0] {
	case '\'':
		return nil, "", true
	case '"':
		inner, rest, closed := strings.Cut(text[1:], `"`)
		if !closed {
			return nil, "", false
		}
		return []byte(inner), rest, false
	}
	text = strings.TrimLeft(text, " \t")
	if lower := strings.ToLower(text); strings.HasPrefix(lower, "0x") {
		end := 2
		for end < len(lower) && strings.IndexByte("0123456789abcdef", lower[end]) >= 0 {
			end++
		}
		digits := lower[2:end]
		if len(digits)%2 == 1 {
			digits = "0" + digits
		}
		part, _ = hex.DecodeString(digits) // the digits are hexadecimal and even in number
		return part, text[end:], false
	}
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[0] == '-' || text[0] == '+')) {
		end++
	}
	if end > 0 && end < len(text) && text[end-1] == '0' && (text[end] == 'x' || text[end] == 'X') {
		end-- // 120xff is 12 and 0xff
	}
	n, err := strconv.ParseInt(text[:end], 10, 32)
	if err != nil {
		return nil, "", false
	}
	return patternNumber(int32(n)), text[end:], false
}

// patternNumber encodes a decimal number as fio does: the lowest byte first and without zeros above the highest.
func patternNumber(n int32) []byte {
	part := binary.LittleEndian.AppendUint32(nil, uint32(n))
	for len(part) > 1 && part[len(part)-1] == 0 {
		part = part[:len(part)-1]
	}
	return part
}
