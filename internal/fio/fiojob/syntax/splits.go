package syntax

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Split is one entry of bssplit: Percent of the operations have size Bytes.
type Split struct {
	Bytes   int64
	Percent float64
}

const BlockBytesMax = 1 << 30

// splitsMax is fio's bound on the entries of one direction.
const splitsMax = 64

func Splits(a *Value, text string) (out []Split, exact string, ok bool) {
	var open []int
	var printed []string
	sum := 0.0
	for entry := range strings.SplitSeq(text, ":") {
		sizeText, shareText, _ := strings.Cut(entry, "/")
		n, err := a.BytesNumber(sizeText)
		if err != nil || n.IsPercent || n.Value < 1 || n.Value > BlockBytesMax {
			a.Bad(fmt.Sprintf("want size/percent:size/percent, and not %q", entry))
			return nil, "", false
		}
		a.Explain(n)
		share := 0
		if shareText = strings.TrimSuffix(strings.TrimSpace(shareText), "%"); a.Reading == Exact {
			whole, _, _ := ExactDigits(shareText)
			share = int(min(max(whole, 0), PercentMax))
		} else if shareText != "" {
			share, err = strconv.Atoi(shareText)
			if err != nil || share < 0 || share > 100 {
				a.Bad(fmt.Sprintf("want a whole percentage from 0 to 100, and not %q", shareText))
				return nil, "", false
			}
		}
		if share == 0 {
			open = append(open, len(out))
			printed = append(printed, FormatBytes(n.Value)+"/")
		} else {
			printed = append(printed, fmt.Sprintf("%s/%d", FormatBytes(n.Value), share))
		}
		sum += float64(share)
		out = append(out, Split{Bytes: n.Value, Percent: float64(share)})
		if len(out) > splitsMax {
			a.Bad(fmt.Sprintf("more than %d block sizes", splitsMax))
			return nil, "", false
		}
	}
	return out, strings.Join(printed, ":"), fillSplits(a, out, open, sum)
}

// fillSplits makes the shares add up to 100.
func fillSplits(a *Value, out []Split, open []int, sum float64) bool {
	switch {
	case sum > 100 && a.Reading == Exact:
		cutSplits(out)
	case sum > 100:
		a.Bad(fmt.Sprintf("the percentages add up to %g", sum))
		return false
	case len(open) > 0:
		for _, i := range open {
			out[i].Percent = (100 - sum) / float64(len(open))
		}
	case sum < 100:
		largest := 0
		for i, s := range out {
			if s.Percent >= out[largest].Percent {
				largest = i
			}
		}
		out[largest].Percent += 100 - sum
		a.Warn("percentages-incomplete", fmt.Sprintf("the percentages add up to %g; the largest share, of blocks of %s, takes the rest",
			sum, FormatBytes(out[largest].Bytes)), "let them add up to 100")
	}
	return true
}

// cutSplits does what fio does if shares add up to more than 100: it uses the smaller ones first.
func cutSplits(out []Split) {
	order := make([]int, len(out))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(out[a].Percent, out[b].Percent) })
	left := 100.0
	for _, i := range order {
		out[i].Percent = min(out[i].Percent, left)
		left -= out[i].Percent
	}
}

// PrioritySplit is one entry of cmdprio_bssplit: Percent of the operations of this size have the priority.
type PrioritySplit struct {
	Bytes        int64
	Percent      int
	Class, Level int // 0 is best effort if there is a level; -1: those of cmdprio_class and cmdprio
}

func PrioritySplits(a *Value, text string) (list []PrioritySplit, exact string, ok bool) {
	var printed []string
	sums := map[int64]int{}
	for entry := range strings.SplitSeq(text, ":") {
		parts := strings.Split(entry, "/")
		s := PrioritySplit{Class: -1, Level: -1}
		size, err := a.BytesNumber(parts[0])
		bad := err != nil || size.IsPercent || size.Value < 1 || size.Value > BlockBytesMax || len(parts) != 2 && len(parts) != 4
		if !bad {
			s.Bytes = size.Value
			fields := []struct {
				to  *int
				max int
			}{{&s.Percent, 100}, {&s.Class, 3}, {&s.Level, 7}}
			for i, part := range parts[1:] {
				n, err := strconv.Atoi(strings.TrimSpace(part))
				bad = bad || err != nil || n < 0 || n > fields[i].max
				*fields[i].to = n
			}
		}
		switch {
		case bad:
			a.Bad(fmt.Sprintf("want size/percent or size/percent/class/priority, and not %q", entry))
			return nil, "", false
		case len(list) >= splitsMax:
			a.Bad(fmt.Sprintf("more than %d entries", splitsMax))
			return nil, "", false
		}
		if sums[s.Bytes] += s.Percent; sums[s.Bytes] > 100 {
			a.Bad(fmt.Sprintf("the percentages of blocks of %s add up to %d", FormatBytes(s.Bytes), sums[s.Bytes]))
			return nil, "", false
		}
		a.Explain(size)
		text := fmt.Sprintf("%s/%d", FormatBytes(s.Bytes), s.Percent)
		if len(parts) == 4 {
			text += fmt.Sprintf("/%d/%d", s.Class, s.Level)
		}
		printed, list = append(printed, text), append(list, s)
	}
	return list, strings.Join(printed, ":"), true
}
