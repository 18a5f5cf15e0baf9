package jinja

// expr is a parsed expression.
type expr interface{ place() at }

type (
	constExpr struct {
		at
		value any
	}
	nameExpr struct {
		at
		name string
	}
	listExpr struct {
		at
		items []expr
		tuple bool
	}
	dictExpr struct {
		at
		keys, values []expr
	}
	// unaryExpr is -x or +x.
	unaryExpr struct {
		at
		op string
		x  expr
	}
	// binaryExpr is one of + - * / // % ** ~.
	binaryExpr struct {
		at
		op          string
		left, right expr
	}
	// logicExpr is and, or.
	logicExpr struct {
		at
		op          string
		left, right expr
	}
	notExpr struct {
		at
		x expr
	}
	// compareExpr is a chain: first ops[0] rest[0] ops[1] rest[1] …
	compareExpr struct {
		at
		first expr
		ops   []string
		rest  []expr
	}
	// condExpr is then if cond else other; other may be nil.
	condExpr struct {
		at
		cond, then, other expr
	}
	attrExpr struct {
		at
		x    expr
		name string
	}
	itemExpr struct {
		at
		x, index expr
	}
	// sliceExpr is x[low:high:step]; each bound may be nil.
	sliceExpr struct {
		at
		x, low, high, step expr
	}
	callExpr struct {
		at
		fn   expr
		args arguments
	}
	filterExpr struct {
		at
		x    expr
		name string
		args arguments
	}
	testExpr struct {
		at
		x    expr
		name string
		args arguments
	}
)

// arguments of a call, filter or test.
type arguments struct {
	positional []expr
	names      []string // of the keyword arguments
	named      []expr
}

func (a arguments) all() []expr { return append(append([]expr(nil), a.positional...), a.named...) }

// stmt is a parsed statement.
type stmt interface{ place() at }

type (
	textStmt struct {
		at
		text string
	}
	outputStmt struct {
		at
		x expr
	}
	ifStmt struct {
		at
		cond       expr
		then, more []stmt
	}
	forStmt struct {
		at
		targets    []string
		iter, cond expr // cond may be nil
		body, more []stmt
	}
	// setStmt assigns to names, to one attribute of a namespace, or, with a body, the text that the body renders.
	setStmt struct {
		at
		targets   []string
		attribute string // of targets[0], which is a namespace
		x         expr
		body      []stmt
	}
	withStmt struct {
		at
		names  []string
		values []expr
		body   []stmt
	}
)
