package chassis

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestFRUData(t *testing.T) {
	t.Parallel()
	for _, serial := range []string{"", "1", "LABC26A314C01", strings.Repeat("x", 100)} {
		data := fruData(serial)
		if len(data)%8 != 0 || fruSum(data[:8]) != 0 {
			t.Fatalf("%q: header % x", serial, data[:8])
		}
		rest := data[8:]
		for area := range 2 {
			length := int(rest[1]) * 8
			if length == 0 || length > len(rest) || fruSum(rest[:length]) != 0 {
				t.Fatalf("%q: area %d: % x", serial, area, rest)
			}
			if !bytes.Contains(rest[:length], []byte(serial[:min(len(serial), 63)])) {
				t.Errorf("%q is not in area %d", serial, area)
			}
			rest = rest[length:]
		}
		if len(rest) != 0 {
			t.Errorf("%q: % x is left", serial, rest)
		}
	}
}

func TestChassisCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words, out, asked string
		power             Power
		fails             bool
	}{
		{words: "get power", out: "power:1\n", power: PowerOn},
		{words: "get power", out: "power:1\n", power: PowerPoweringOff},
		{words: "get power boot identify", out: "power:0\nboot:default\nidentify:0\n", power: PowerOff},
		{words: "set power 0", asked: "[ForceOff]"},
		{words: "set power 1", asked: "[On]"},
		{words: "set reset 1", asked: "[ForceRestart]"},
		{words: "set shutdown 1", asked: "[GracefulShutdown]"},
		{words: "set boot pxe power 0", asked: "[ForceOff]"},
		{words: "set power 7"},
		{words: "set power"},
		{words: "check power 0"},
		{words: "get", fails: true},
		{words: "grab power", fails: true},
		{words: "", fails: true},
	} {
		box := &fakeChassis{power: c.power}
		var out bytes.Buffer
		err := Command(strings.Fields(c.words), &out, IPMI{
			Power: func() (Power, error) { return box.Power(), nil },
			Reset: func(kind Reset) error { return box.Reset(t.Context(), kind) },
		})
		asked := ""
		if len(box.asked) > 0 {
			asked = fmt.Sprint(box.asked)
		}
		if (err != nil) != c.fails || out.String() != c.out || asked != c.asked {
			t.Errorf("%q: %q, asked %s, %v", c.words, out.String(), asked, err)
		}
	}
	broken := errors.New("broken")
	fail := IPMI{Power: func() (Power, error) { return "", broken }, Reset: func(Reset) error { return broken }}
	for _, words := range []string{"get power", "set power 0"} {
		if err := Command(strings.Fields(words), &bytes.Buffer{}, fail); !errors.Is(err, broken) {
			t.Errorf("%s: %v", words, err)
		}
	}
}
