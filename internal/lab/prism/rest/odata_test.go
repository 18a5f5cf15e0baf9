package rest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	o := Object{
		"name": "it's-1", "size": int64(10), "on": true, "cluster": Object{"extId": "c1"}, "categories": []Object{{"extId": "a"}, {"extId": "b"}},
	}
	for text, want := range map[string]bool{
		"name eq 'it''s-1'": true, "name eq 'x'": false, "name ne 'x'": true, "size gt 9": true, "size le 9": false, "size eq 10": true,
		"startswith(name,'it')": true, "startswith(name, 'x') or endswith(name,'-1')": true, "contains(name,'''s')": true, "on eq true": true,
		"cluster/extId eq 'c1' and name eq 'x'": false, "not (name eq 'x')": true, "categories/any(c:c/extId eq 'b')": true,
		"categories/any(c:c/extId eq 'z')": false, "name in ('x','it''s-1')": true, "nothing eq null": true,
		"name eq 'x' or name eq 'y' or size lt 11 and on eq true": true,
	} {
		c, err := parseFilter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := c(o); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for _, text := range []string{"", "name", "name eq", "name eq 'x", "name is 'x'", "(name eq 'x'", "name eq 'x')", "startswith(name)", "not", strings.Repeat("(", 40),
		"name in ()", "c/any(x", "name eq 'x' and", strings.Repeat("a", filterBytesMax+1)} {
		if _, err := parseFilter(text); err == nil {
			t.Errorf("%.60q is accepted", text)
		}
	}
}

func FuzzFilter(f *testing.F) {
	f.Add("name eq 'x' and (size gt 3 or categories/any(c:c/extId eq 'b'))")
	f.Fuzz(func(_ *testing.T, text string) {
		if c, err := parseFilter(text); err == nil {
			c(Object{"name": "x", "categories": []Object{{"extId": "b"}}})
		}
	})
}

func TestPage(t *testing.T) {
	t.Parallel()
	var all []Object
	for i := range 7 {
		all = append(all, Object{"extId": fmt.Sprint(i), "n": i, "$objectType": "x"})
	}
	p, err := ReadPage(url.Values{"$page": {"1"}, "$limit": {"2"}, "$filter": {"n gt 0"}, "$orderby": {"n desc"}, "$select": {"n"}})
	if err != nil {
		t.Fatal(err)
	}
	page, total := p.Apply(all)
	if got := fmt.Sprint(page, total); got != "[map[$objectType:x extId:4 n:4] map[$objectType:x extId:3 n:3]] 6" {
		t.Error(got)
	}
	for _, q := range []url.Values{{"$limit": {"101"}}, {"$limit": {"0"}}, {"$page": {"-1"}}, {"$page": {"x"}}, {"$filter": {"("}}} {
		if _, err := ReadPage(q); err == nil {
			t.Errorf("%v is accepted", q)
		}
	}
}
