package syntax

// Expr is a parsed expression.
type Expr interface{ Place() At }

type (
	ConstExpr struct {
		At
		Value any
	}
	NameExpr struct {
		At
		Name string
	}
	ListExpr struct {
		At
		Items []Expr
		Tuple bool
	}
	DictExpr struct {
		At
		Keys, Values []Expr
	}
	// UnaryExpr is -x or +x.
	UnaryExpr struct {
		At
		Op string
		X  Expr
	}
	// BinaryExpr is one of + - * / // % ** ~.
	BinaryExpr struct {
		At
		Op          string
		Left, Right Expr
	}
	// LogicExpr is and, or.
	LogicExpr struct {
		At
		Op          string
		Left, Right Expr
	}
	NotExpr struct {
		At
		X Expr
	}
	// CompareExpr is a chain: first ops[0] rest[0] ops[1] rest[1] …
	CompareExpr struct {
		At
		First Expr
		Ops   []string
		Rest  []Expr
	}
	// CondExpr is then if cond else other; other may be nil.
	CondExpr struct {
		At
		Cond, Then, Other Expr
	}
	AttrExpr struct {
		At
		X    Expr
		Name string
	}
	ItemExpr struct {
		At
		X, Index Expr
	}
	// SliceExpr is x[low:high:step]; each bound may be nil.
	SliceExpr struct {
		At
		X, Low, High, Step Expr
	}
	CallExpr struct {
		At
		Fn   Expr
		Args Arguments
	}
	FilterExpr struct {
		At
		X    Expr
		Name string
		Args Arguments
	}
	TestExpr struct {
		At
		X    Expr
		Name string
		Args Arguments
	}
)

// Arguments of a call, filter or test.
type Arguments struct {
	Positional []Expr
	Names      []string // of the keyword arguments
	Named      []Expr
}

func (a Arguments) All() []Expr { return append(append([]Expr(nil), a.Positional...), a.Named...) }

// Stmt is a parsed statement.
type Stmt interface{ Place() At }

type (
	TextStmt struct {
		At
		Text string
	}
	OutputStmt struct {
		At
		X Expr
	}
	IfStmt struct {
		At
		Cond       Expr
		Then, More []Stmt
	}
	ForStmt struct {
		At
		Targets    []string
		Iter, Cond Expr // cond may be nil
		Body, More []Stmt
	}
	// SetStmt assigns to names, to one attribute of a namespace, or, with a body, the text that the body renders.
	SetStmt struct {
		At
		Targets   []string
		Attribute string // of targets[0], which is a namespace
		X         Expr
		Body      []Stmt
	}
	WithStmt struct {
		At
		Names  []string
		Values []Expr
		Body   []Stmt
	}
)
