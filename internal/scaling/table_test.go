package scaling

import (
	"errors"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
)

func TestReadTable(t *testing.T) {
	want := points(1, 64.9, 18, 995.9, 18, 990)
	for name, text := range map[string]string{
		"commas":          "1,64.9\n18,995.9\n18,990\n",
		"headings":        "N,X\n1,64.9\n18,995.9\n18,990",
		"byte order mark": "\ufeffN,X\r\n1,64.9\r\n18,995.9\r\n18,990\r\n",
		"semicolons":      "clients;tps\n1;64,9\n18;995,9\n18;990\n",
		"tabs":            "1\t64.9\n18\t995.9\n18\t990\n",
		"bars":            "n | x\n1 | 64.9\n18 | 995.9\n18 | 990\n",
		"blanks":          "  workers   throughput\n  1  64.9\n 18  995.9\n 18  990\n",
		"comments":        "# MySQL\n\n1,64.9 # first\n  # more\n18,995.9\n18,990\n",
		"more columns":    "run,iops,host,workers\na,64.9,h,1\nb,995.9,h,18\nc,990,h,18\n",
		"quotes":          "\"workers\",\"iops\"\n\"1\",\"64.9\"\n18,995.9\n18,990\n",
	} {
		table, err := ReadTable(strings.NewReader(text), name, nil)
		if err != nil || len(table.Points) != len(want) {
			t.Errorf("%s: %v, %v", name, table, err)
			continue
		}
		for i := range want {
			if table.Points[i] != want[i] {
				t.Errorf("%s: point %d is %v, want %v", name, i, table.Points[i], want[i])
			}
		}
	}
	table, err := ReadTable(strings.NewReader("a,b,c\n5,1,7\n"), "f", []string{"b", "3"})
	if err != nil || table.Points[0] != (Point{1, 7}) || table.ThroughputHeading != "c" {
		t.Errorf("chosen columns: %v, %v", table, err)
	}
}

func TestReadTableRefuses(t *testing.T) {
	for text, want := range map[string]struct {
		line          int
		message, hint string
	}{
		"":                       {0, "no measurements", "8,7867.6"},
		"n,x\n":                  {0, "no measurements", ""},
		"1,2\n2,fast\n":          {2, `throughput: invalid number "fast"`, ""},
		"1,2\n2,41.2k\n":         {2, `invalid number "41.2k"`, "41200 for 41.2k"},
		"1,2\n2,\"1,234\"\n":     {2, `invalid number "1,234"`, "separators of thousands"},
		"1,2\n2,\n":              {2, `invalid number ""`, "leave the line out"},
		"1,2\n3\n":               {2, "1 column, and throughput is column 2", ""},
		"1,2\n0,3\n":             {2, "0 workers: must be positive", ""},
		"1,2\n2,-3\n":            {2, "a throughput of -3", ""},
		"1,2\n2,NaN\n":           {2, `invalid number "NaN"`, ""},
		"1\n2\n":                 {1, "one column", "separated by"},
		"1,2,3\n":                {1, "3 columns, and it is not clear", "--columns 1,2"},
		"time,a,b\n1,2,3\n":      {1, "3 columns", "--columns time,a"},
		strings.Repeat("9", 1e5): {1, "line is longer than", ""},
	} {
		_, err := ReadTable(strings.NewReader(text), "data.csv", nil)
		var list *diag.ListError
		if !errors.As(err, &list) || len(list.List) == 0 {
			t.Errorf("%.20q: %v", text, err)
			continue
		}
		d := list.List[0]
		if d.Pos.Line != want.line || d.Pos.File != "data.csv" || !strings.Contains(d.Message, want.message) || !strings.Contains(d.Hint, want.hint) {
			t.Errorf("%.20q: %+v", text, d)
		}
	}
	_, err := ReadTable(strings.NewReader("n,x\n1,2\n"), "f", []string{"n", "y"})
	if list := (*diag.ListError)(nil); !errors.As(err, &list) || !strings.Contains(list.List[0].Hint, "columns: n, x") {
		t.Errorf("unknown column: %v", err)
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add("n;x\n1;2,5\n# c\n2;\"3\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ReadTable(strings.NewReader(text), "f", nil)
		if err == nil && len(table.Points) == 0 {
			t.Error("no points and no error")
		}
	})
}
