"""How test_oracle.py drives upstream's d2l beside the face.

A framework's ``oracle`` has these names. PaddlePaddle and MLX have none: upstream has no such face.

``upstream()``
    the module; ImportError where it cannot be imported
``FORMS``
    of each layer, arguments that upstream takes as well: widths of 8, 2 heads, 16 hidden units, 7
    words, no dropout
``twin(ours, theirs, *inputs)``
    upstream's layer behind the adapter's ``Layer``, with the parameters of ours
``call(function, *args)``
    a function of either, on NumPy arrays
``TENSOR_CALLS``
    arguments of tensor functions whose signatures are the framework's own; a dict at the end is keywords
``NOT_COMPARED``
    name to reason, of this framework
``run_interface(Class)``
    make one and call it
``translate(d2l, name, tokens, lens)``
    a model ``name`` (EncoderDecoder, Seq2Seq) of fixed parameters: its output, and what its
    ``predict_step`` gives
``xavier(function)``
    the parameters after ``init_seq2seq``, from a fixed seed
``seed()``
    draw the same random numbers from here on
``functions(d2l, name, batches)``
    what ``train_seq2seq`` makes of fixed parameters, or what ``predict_seq2seq`` says with them
"""
