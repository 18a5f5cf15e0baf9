package fiojob

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Content says what the writes of a job hold. Options that are not set are zero, but for the chunk.
type Content struct {
	CompressPercent    int    // of each chunk: the part that compresses to nothing
	CompressChunkBytes int64  // 0: a chunk is a whole block
	DedupePercent      int    // of the blocks: repeat another one
	DedupeMode         string // "" and "repeat": any; "working_set": one of a set of DedupeSetPercent of the job's size
	DedupeSetPercent   int
	DedupeGlobal       bool   // all jobs share the set
	Pattern            []byte `json:",omitempty"` // repeated from the start of a block on; with CompressPercent: of the part that compresses
}

const (
	compressChunkDefault = 512
	dedupeSetDefault     = 5 // percent
)

// patternBytesMax bounds a pattern. fio 3.33 takes 512 bytes and later versions 128 MiB, which no block of a job has.
const patternBytesMax = 1 << 20

// setPattern reads buffer_pattern: hexadecimal bytes 0x…, decimal numbers and texts in double quotes, one behind the
// other. A name in single quotes is a file whose content is part of the pattern; see patternFile.
func setPattern(j *Job, a *arg) {
	var pattern []byte
	for rest := a.text; rest != ""; {
		part, text, file := patternPart(rest)
		if file {
			var ok bool
			if part, text, ok = patternFile(j, a, rest); !ok {
				return
			}
		}
		switch {
		case len(part) == 0:
			a.bad(`want 0x and hexadecimal digits, a decimal number of 32 bits, or a text in double quotes, one or more of them`)
			return
		}
		pattern, rest = append(pattern, part...), text
	}
	switch {
	case len(pattern) == 0:
		a.bad(`want a pattern, such as 0xdeadbeef or "text"`)
	case len(pattern) > patternBytesMax:
		a.bad("a pattern has at most " + strconv.Itoa(patternBytesMax) + " bytes")
	default:
		j.Content.Pattern = pattern
	}
}

// patternPart reads the first part of text and returns its bytes, none when it cannot be read. fio takes blanks in front
// of numbers only.
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
		part, _ = hex.DecodeString(digits) // they are hexadecimal and even in number
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

// patternFile reads a part that is a file name in single quotes, relative to the directory of the job file or the current
// one. It needs permission to read files there and is refused in a workload. It returns false after reporting an error.
func patternFile(j *Job, a *arg, text string) (part []byte, rest string, ok bool) {
	o := &a.p.options
	name, rest, closed := strings.Cut(text[1:], "'")
	if !o.Host || o.FS == nil {
		noFile("'")(j, a)
		return nil, "", false
	}
	name = path.Clean(filepath.ToSlash(name))
	if !closed || !fs.ValidPath(name) {
		a.bad("want the name of a file below the folder of the job file or the current one, in single quotes")
		return nil, "", false
	}
	place := o.patternFolder(name)
	info, err := fs.Stat(place, name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() == 0 || info.Size() > patternBytesMax) {
		err = fmt.Errorf("file %q: not a regular file of 1 to %d bytes", name, patternBytesMax)
	}
	if err == nil {
		part, err = fs.ReadFile(place, name)
	}
	if err != nil {
		a.bad(err.Error())
		return nil, "", false
	}
	return part, rest, true
}

// patternFolder returns the folder that has the file of a pattern, that of the job file where none has.
func (o *Options) patternFolder(name string) fs.FS {
	folders := []fs.FS{o.FS, o.WorkFS}
	if o.Reading == Exact {
		slices.Reverse(folders)
	}
	for _, f := range folders {
		if f == nil {
			continue
		}
		if _, err := fs.Stat(f, name); err == nil {
			return f
		}
	}
	return o.FS
}

// patternNumber is a decimal number as fio puts it down: its lowest byte first and without zeros above the highest.
func patternNumber(n int32) []byte {
	part := binary.LittleEndian.AppendUint32(nil, uint32(n))
	for len(part) > 1 && part[len(part)-1] == 0 {
		part = part[:len(part)-1]
	}
	return part
}
