// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o /dev/null

// The group and the name of an argument are argument attributes that the text does
// not show.
// GENERIC: "fi.program"() <{arg_attrs = [{fi.name = "a", fi.plan}, {fi.name = "b", fi.sorted}, {fi.name = "see"}]

// CHECK-LABEL: fi.program @both plan(%a: tensor<?xi32>) run(%b: tensor<4xf32> {fi.sorted}, %see: f32) -> (tensor<4xf32>) {
fi.program @both plan(%a: tensor<?xi32>)
    run(%b: tensor<4xf32> {fi.sorted}, %c: f32 {fi.name = "see"}) -> (tensor<4xf32>) {
  fi.return %b : tensor<4xf32>
}

// CHECK-LABEL: fi.program @nothing run() {
fi.program @nothing run() {
  fi.return
}

// CHECK-LABEL: fi.program @attributes plan(%{{.*}}: index) run() attributes {team = "x"} {
fi.program @attributes plan(%0: index) run() attributes {team = "x"} {
  fi.return
}
