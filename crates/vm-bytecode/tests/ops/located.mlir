// A failure whose place in the source is known.
vm.module @located {
  vm.export @outer
  vm.func @outer(%status: i32) -> i32 {
    %code = vm.call @inner(%status) : (i32) -> i32
    vm.return %code : i32
  }

  vm.func private @inner(%status: i32) -> i32 attributes {inlining_policy = #util.inline.never} {
    vm.cond_br %status, ^bb1, ^bb2
  ^bb1:
    vm.fail %status, "located"
  ^bb2:
    vm.return %status : i32
  }

  vm.export @fails
  vm.func @fails(%status: i32) -> i32 {
    vm.cond_br %status, ^bb1, ^bb2
  ^bb1:
    vm.fail %status, "located"
  ^bb2:
    vm.return %status : i32
  }
}
