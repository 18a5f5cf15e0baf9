package scenario_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/braggdev/bragg/internal/scenario"
)

// What Python's own slicing selects was recorded by testdata/nodes.py; a row without nodes is an error there.
func TestNodesAreSelectedAsPythonDoes(t *testing.T) {
	text, err := os.ReadFile("testdata/nodes.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Text  string
		N     int
		Nodes *[]int
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		got, err := scenario.SelectNodes(row.Text, row.N)
		switch {
		case row.Nodes == nil && err == nil:
			t.Errorf("%q of %d nodes selects %v, want an error", row.Text, row.N, got)
		case row.Nodes != nil && err != nil:
			t.Errorf("%q of %d nodes: %v, want %v", row.Text, row.N, err, *row.Nodes)
		case row.Nodes != nil && !slices.Equal(got, *row.Nodes):
			t.Errorf("%q of %d nodes selects %v, want %v", row.Text, row.N, got, *row.Nodes)
		}
	}
}

func TestNodeSlicesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		",":                      `nodes ",": empty item between commas`,
		"0,":                     `nodes "0,": empty item between commas`,
		"1:2:3:4":                `nodes "1:2:3:4": "1:2:3:4" has more than start:stop:step`,
		"x":                      `nodes "x": unexpected "x"`,
		"2n":                     `nodes "2n": unexpected "n"`,
		"1 2":                    `nodes "1 2": unexpected "2"`,
		"(1":                     `nodes "(1": a closing bracket is missing`,
		"1+":                     `nodes "1+": a number is missing at the end`,
		"4":                      `nodes "4": no node 4 among 4, 0 to 3`,
		"-5":                     `nodes "-5": no node -5 among 4, 0 to 3`,
		"1/0":                    `nodes "1/0": division by zero`,
		"::0":                    `nodes "::0": the step is 0`,
		"99999999999999999999":   `nodes "99999999999999999999": the number 99999999999999999999 is too large`,
		"999999*999999":          `nodes "999999*999999": 999998000001 is out of range`,
		"__import__('os')":       `nodes "__import__('os')": unexpected "__import__('os')"`,
		"0;1":                    `nodes "0;1": unexpected ";1"`,
		"((((((((((((((((((((((": `nodes "((((((((((((((((((((((": more than 20 brackets and signs`,
	} {
		_, err := scenario.SelectNodes(text, 4)
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestNodeSliceLaws(t *testing.T) {
	part := rapid.Custom(func(t *rapid.T) string {
		number := rapid.OneOf(rapid.Just(""), rapid.Map(rapid.IntRange(-9, 9), func(i int) string { return fmt.Sprint(i) }),
			rapid.SampledFrom([]string{"n", "n-1", "n/2", "-n", "(n+1)/2"}))
		text := number.Draw(t, "start") + ":" + number.Draw(t, "stop")
		if rapid.Bool().Draw(t, "with step") {
			text += ":" + rapid.SampledFrom([]string{"1", "2", "-1", "-2", "n+1"}).Draw(t, "step")
		}
		return text
	})
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		a, b := part.Draw(t, "a"), part.Draw(t, "b")
		select1 := func(text string) []int {
			got, err := scenario.SelectNodes(text, n)
			if err != nil {
				t.Fatalf("%q of %d: %v", text, n, err)
			}
			return got
		}
		first, second := select1(a), select1(b)
		both := select1(a + " , " + b)
		want := slices.Clone(first)
		for _, i := range second {
			if !slices.Contains(want, i) {
				want = append(want, i)
			}
		}
		if !slices.Equal(both, want) {
			t.Fatalf("%q and %q of %d: %v, want %v", a, b, n, both, want)
		}
		for _, i := range both {
			if i < 0 || i >= n {
				t.Fatalf("%q selects %d of %d", a, i, n)
			}
		}
		index := rapid.IntRange(-15, 15).Draw(t, "index")
		got, err := scenario.SelectNodes(fmt.Sprint(index), n)
		if inside := index >= -n && index < n; inside != (err == nil) || inside && got[0] != (index+n)%max(n, 1) {
			t.Fatalf("index %d of %d: %v, %v", index, n, got, err)
		}
	})
}

func FuzzSelectNodes(f *testing.F) {
	for _, s := range []string{"all", ":n-1", "0, 2:4", "(n+1)/2::-1", "1:2:3:4", "--1", "n/0", "99999999999"} {
		f.Add(s, 4)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		got, err := scenario.SelectNodes(text, n%1000)
		if err != nil {
			return
		}
		seen := map[int]bool{}
		for _, i := range got {
			if i < 0 || i >= n%1000 || seen[i] {
				t.Fatalf("%q of %d selects %v", text, n%1000, got)
			}
			seen[i] = true
		}
	})
}
