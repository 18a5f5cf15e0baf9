package page

import (
	"strings"
	"testing"

	xhtml "golang.org/x/net/html"
)

func TestDescriptionKeepsWhatIsAllowed(t *testing.T) {
	cases := map[string]string{
		"<p>One <b>two</b> <i>three</i></p>":         "<p>One <strong>two</strong> <em>three</em></p>",
		"a < b & c > d":                              "a &lt; b &amp; c &gt; d",
		"<h1>Head</h1><ul><li>a<li>b</ul>":           "<h3>Head</h3><ul><li>a<li>b</li></li></ul>",
		"<p onclick=alert(1) class=x style=a>x":      "<p>x</p>",
		"<script>alert(1)</script>after":             "after",
		"<SCRIPT src=//x>a</SCRIPT >after":           "after",
		"<svg><script>1</script><p>x</p></svg>y":     "y",
		"<img src=x onerror=alert(1)>text":           "text",
		"<a href='javascript:alert(1)'>link</a>":     "link",
		"</p></div>stray":                            "stray",
		"line<br/>line<br>line":                      "line<br>line<br>line",
		"<math><mtext></p><img src onerror=1>":       "",
		"<style><!--</style><script>1</script>x":     "x",
		"<p>a\u202eb\x1b[2J</p>":                     "<p>a⟨U+202E⟩b\uFFFD[2J</p>",
		"<noscript><p title='</noscript><img src=x>": "",
		"<b><p>crossed</b></p>":                      "<strong><p>crossed</p></strong>",
	}
	for source, want := range cases {
		if got := sanitizeDescription(source); got != want {
			t.Errorf("%q becomes %q, want %q", source, got, want)
		}
	}
}

// FuzzDescription: whatever goes in, what comes out is a balanced tree of allowed elements without attributes, and
// sanitizing it again changes nothing.
func FuzzDescription(f *testing.F) {
	for _, seed := range []string{"<p>x</p>", "<script>alert(1)</script>", "<svg/onload=alert(1)>", "<![CDATA[<p>]]>", "<!--><p>-->",
		"<p <p>", "&lt;script&gt;", "<textarea><p></textarea>", "<plaintext><p>", "<ul><li><ol><li>x", "<b\x00r>", "\xff<p>"} {
		f.Add(seed)
	}
	allowed := map[string]bool{}
	for _, element := range descriptionElements {
		allowed[element] = true
	}
	f.Fuzz(func(t *testing.T, source string) {
		out := sanitizeDescription(source)
		var open []string
		tokens := xhtml.NewTokenizer(strings.NewReader(out))
		for {
			kind := tokens.Next()
			if kind == xhtml.ErrorToken {
				break
			}
			token := tokens.Token()
			switch kind {
			case xhtml.TextToken:
			case xhtml.StartTagToken:
				if !allowed[token.Data] || len(token.Attr) > 0 {
					t.Fatalf("%q lets %v through: %q", source, token, out)
				}
				if token.Data != "br" {
					open = append(open, token.Data)
				}
			case xhtml.EndTagToken:
				if n := len(open); n == 0 || open[n-1] != token.Data {
					t.Fatalf("%q becomes unbalanced: %q", source, out)
				}
				open = open[:len(open)-1]
			default:
				t.Fatalf("%q lets %v through: %q", source, token, out)
			}
		}
		if len(open) > 0 {
			t.Fatalf("%q leaves %v open: %q", source, open, out)
		}
		if again := sanitizeDescription(out); again != out {
			t.Fatalf("sanitizing %q again gives %q", out, again)
		}
	})
}
