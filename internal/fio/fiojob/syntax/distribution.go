package syntax

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Distribution defines how random offsets are drawn. Every kind except "random" draws without a random map.
type Distribution struct {
	Kind      string  // "random" (uniform), "zipf", "pareto", "normal", "zoned", "zoned_abs"
	Parameter float64 // theta of zipf, h of pareto, deviation of normal in percent; 0 for the other kinds
	// Centre is the position of the most frequent block, as a share of the region from 0 to 1: zipf, pareto, normal.
	Centre    float64               `json:",omitzero"`
	HasCentre bool                  `json:",omitzero"`
	Zones     [3][]DistributionZone `json:",omitzero"` // of zoned and zoned_abs, from the start of the region
}

// DistributionZone is a part of the region that gets a share of the operations.
type DistributionZone struct {
	AccessPercent int
	SizePercent   float64 // of the region: zoned
	SizeBytes     int64   // zoned_abs; 0: the rest of the region, divided among all such zones
}

// distributionMax bounds theta, zonesMax the zones of one direction, which is fio's own bound.
const (
	distributionMax = 100
	zonesMax        = 256
)

var distributions = []string{"random", "zipf", "pareto", "normal", "zoned", "zoned_abs"}

// ReadDistribution reads random_distribution.
func ReadDistribution(a *Value) (d Distribution, ok bool) {
	written, rest, has := strings.Cut(a.Text, ":")
	kind := strings.ToLower(written)
	if !slices.Contains(distributions, kind) {
		a.Choice(written, distributions, nil)
		return d, false
	}
	a.Option.Exact = kind + strings.TrimPrefix(a.Text, written)
	if kind != written || a.Raw.BlankBefore {
		a.RefusedByFio(a.Option.Exact)
	}
	d = Distribution{Kind: kind, Parameter: map[string]float64{"zipf": 1.1, "pareto": 0.2}[kind]}
	switch kind {
	case "zipf", "pareto", "normal":
		if has && !readCurve(a, &d, rest) {
			return d, false
		}
	case "zoned", "zoned_abs":
		if !readZones(a, &d, rest) {
			return d, false
		}
	}
	switch {
	case kind == "zipf" && (d.Parameter <= 0 || d.Parameter == 1 || d.Parameter > distributionMax):
		a.Bad("want a theta above 0 that is not 1")
		return d, false
	case kind == "pareto" && (d.Parameter <= 0 || d.Parameter >= 1):
		a.Bad("want a power between 0 and 1")
		return d, false
	case kind == "normal" && (d.Parameter < 0 || d.Parameter >= 100):
		a.Bad("want a deviation from 0 to below 100")
		return d, false
	}
	return d, true
}

// readCurve reads "1.2" and "1.2:0.5", the parameter and the centre.
func readCurve(a *Value, d *Distribution, text string) bool {
	parameter, centre, has := strings.Cut(text, ":")
	value, err := strconv.ParseFloat(strings.TrimSpace(parameter), 64)
	if err != nil || math.IsNaN(value) {
		a.Bad("want a number after the colon, such as zipf:1.2")
		return false
	}
	d.Parameter = value
	if !has {
		return true
	}
	value, err = strconv.ParseFloat(strings.TrimSpace(centre), 64)
	if err != nil || !(value >= 0 && value <= 1) {
		a.Bad("want a centre from 0 to 1 after the second colon, such as zipf:1.2:0.5")
		return false
	}
	d.Centre, d.HasCentre = value, true
	return true
}

// readZones reads access/size:access/size for each direction.
func readZones(a *Value, d *Distribution, text string) bool {
	value, seen, errors := a.Text, a.Seen, a.Errors
	a.Text, a.Seen = text, text
	a.Triple(func(direction int, text string) (string, bool) {
		a.Text = value // for messages
		zones, exact, ok := zonesOf(a, d.Kind, text)
		d.Zones[direction] = zones
		return exact, ok
	})
	a.Text, a.Seen = value, seen
	a.Option.Exact = d.Kind + ":" + a.Option.Exact
	if strings.Contains(text, ",") && a.Errors == errors {
		a.Warn("fio-refuses", fmt.Sprintf("%s has zones by direction, which fio refuses in many versions, 3.33 among them",
			a.Written()), "use a job for each direction to run it with fio as well")
	}
	for direction := range d.Zones {
		if d.Zones[direction] == nil && a.Errors == errors {
			a.Bad("want zones for each direction")
		}
	}
	return a.Errors == errors
}

func zonesOf(a *Value, kind, text string) (zones []DistributionZone, exact string, ok bool) {
	var printed []string
	access, size := 0, 0.0
	for entry := range strings.SplitSeq(text, ":") {
		z, shown, good := readZone(a, kind, entry)
		if !good {
			return nil, "", false
		}
		zones, printed = append(zones, z), append(printed, shown)
		access += z.AccessPercent
		size += z.SizePercent
	}
	switch {
	case len(zones) > zonesMax:
		a.Bad(fmt.Sprintf("more than %d zones", zonesMax))
	case access != 100:
		a.Bad(fmt.Sprintf("the shares of accesses add up to %d and not to 100", access))
	case size > 100:
		a.Bad(fmt.Sprintf("the sizes of the zones add up to %g %%", size))
	default:
		if kind == "zoned" && !shareRest(zones, 100-size) {
			a.Bad("a zone with accesses has no size")
			return nil, "", false
		}
		return zones, strings.Join(printed, ":"), true
	}
	return nil, "", false
}

// shareRest divides the rest among zones without a size, and returns false if nothing is left.
func shareRest(zones []DistributionZone, rest float64) bool {
	open := 0
	for _, z := range zones {
		if z.SizePercent == 0 {
			open++
		}
	}
	for i := range zones {
		if zones[i].SizePercent == 0 {
			zones[i].SizePercent = rest / float64(open)
			if rest <= 0 && zones[i].AccessPercent > 0 {
				return false
			}
		}
	}
	return true
}

// readZone reads "60/10", "60/8m" and "60", and returns also its form for fio.
func readZone(a *Value, kind, text string) (z DistributionZone, exact string, ok bool) {
	accessText, sizeText, _ := strings.Cut(text, "/")
	accessText, sizeText = strings.TrimSpace(accessText), strings.TrimSpace(sizeText)
	access, err := strconv.Atoi(accessText)
	if err != nil || access < 0 || access > 100 {
		a.Bad(fmt.Sprintf("want accesses/size, the accesses as a whole percentage, and not %q", text))
		return z, "", false
	}
	z.AccessPercent = access
	if sizeText == "" {
		if kind == "zoned_abs" {
			a.Warn("fio-reads-otherwise", fmt.Sprintf("%s: a zone without a size is taken as what is left of the region; fio "+
				"itself refuses it or makes it one block", a.Written()), "write the sizes of all zones")
		}
		return z, accessText, true
	}
	if kind == "zoned" {
		percent, err := strconv.Atoi(strings.TrimSuffix(sizeText, "%"))
		if err != nil || percent < 0 || percent > 100 {
			a.Bad(fmt.Sprintf("want the size of a zone as a whole percentage of the region, and not %q", sizeText))
			return z, "", false
		}
		z.SizePercent = float64(percent)
		return z, fmt.Sprintf("%d/%d", access, percent), true
	}
	n, err := ReadNumber(sizeText, a.KB)
	if err != nil || n.IsPercent || n.Value < 0 {
		a.Bad(fmt.Sprintf("want the size of a zone in bytes, and not %q", sizeText))
		return z, "", false
	}
	z.SizeBytes = n.Value
	return z, fmt.Sprintf("%d/%s", access, FormatBytes(n.Value)), true
}
