package yamltree

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// aliasTextMax bounds the text of a document with all aliases expanded. Without aliases it cannot be longer than the rendered
// text.
const aliasTextMax = 2 * RenderedBytesMax

// alias expands an alias. Its values keep their position at the anchor, where they are written. Each counts again towards
// the bound of the document, so that a small text with aliases of aliases is refused, not expanded.
func (b *Builder) alias(y *yaml.Node) Node {
	if b.aliases++; b.aliases > nestingMax {
		if !b.refused {
			b.refused = true
			b.fault(y, "too-deep", fmt.Sprintf("aliases are nested more than %d deep here: *%s", nestingMax, y.Value),
				"an anchor cannot hold an alias of itself")
		}
		b.aliases--
		return Node{}
	}
	n := b.Build(y.Alias)
	b.aliases--
	return n
}

// countText adds up the text of all values.
func (b *Builder) countText(y *yaml.Node) {
	before := b.text
	if b.text += len(y.Value); b.text > aliasTextMax && before <= aliasTextMax {
		b.fault(y, "too-many-values", fmt.Sprintf("the document has more than %d MiB of text with its aliases", aliasTextMax>>20), "")
	}
}

// full reports whether a bound is exceeded: the document is refused and no further nodes are built.
func (b *Builder) full() bool { return b.refused || b.count > nodesMax || b.text > aliasTextMax }

// mapping returns the keys and values of a mapping. A key "<<" merges the keys of one or several mappings, as in YAML 1.1 and
// X-Ray's reader: keys of the mapping itself win, then those of earlier mappings in the list.
func (b *Builder) mapping(y *yaml.Node) []Node {
	var own, merged []Node
	taken := map[string]bool{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		if isMerge(key) {
			continue
		}
		k := b.Build(key)
		own = append(own, k, b.Build(value))
		if k.Kind == Scalar {
			taken[k.Text] = true
		}
	}
	for i := len(y.Content)/2*2 - 2; i >= 0; i -= 2 { // of several "<<" the last wins
		if key := y.Content[i]; isMerge(key) && !b.full() {
			for _, source := range b.mergeSources(y.Content[i+1]) {
				merged = append(merged, b.missing(b.Build(source), taken)...)
			}
		}
	}
	return append(own, merged...)
}

// isMerge recognises the merge key, which is not quoted.
func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && key.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0
}

// mergeSources returns the mappings that the value of "<<" names, and reports other values.
func (b *Builder) mergeSources(value *yaml.Node) []*yaml.Node {
	sources := []*yaml.Node{value}
	if list := behindAlias(value); list.Kind == yaml.SequenceNode {
		sources = list.Content
	}
	for _, source := range sources {
		if behindAlias(source).Kind != yaml.MappingNode {
			b.fault(value, "yaml-merge", "<< takes a mapping or a list of mappings", "for example <<: *defaults")
			return nil
		}
	}
	return sources
}

func behindAlias(y *yaml.Node) *yaml.Node {
	if y.Kind == yaml.AliasNode {
		return y.Alias
	}
	return y
}

// missing returns the keys of n that are not in taken, with their values, and adds them to taken.
func (b *Builder) missing(n Node, taken map[string]bool) []Node {
	var out []Node
	for i := 0; i+1 < len(n.Items); i += 2 {
		if key := n.Items[i]; key.Kind != Scalar || !taken[key.Text] {
			out = append(out, key, n.Items[i+1])
			taken[key.Text] = true
		}
	}
	return out
}
